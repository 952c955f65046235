"""A judged run with all that is told of it, for reports that are read elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.ci import CiJob
from pytest_ttnn_perf.model.finding import Severity
from pytest_ttnn_perf.model.observation import Location
from pytest_ttnn_perf.model.settings import Missing
from pytest_ttnn_perf.model.verdict import Outcome, Reason

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.model.observation import JudgedTest, Run
    from pytest_ttnn_perf.model.verdict import Verdict
    from pytest_ttnn_perf.report.terminal import Manner

#: There is nothing to compare with.
MISSING: Final = frozenset({Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE})


class Level(Enum):
    """How much something asks for attention."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


@dataclass(frozen=True, slots=True)
class Told:
    """A judged run, and how it is told.

    ``differences`` is what is not as it was when the baselines were accepted; ``record`` where the
    whole run can be read. ``enforced``: errors of the checklist fail their test.
    """

    run: Run
    manner: Manner
    missing: Missing = Missing.FAIL
    enforced: bool = True
    differences: tuple[str, ...] = ()
    record: str | None = None
    job: CiJob = CiJob()

    @property
    def tests(self) -> list[JudgedTest]:
        """All tests, in the order in which they ran."""
        return list(self.run.tests.values())

    def place(self, judged: JudgedTest) -> Location:
        """Return where a test is written, from the repository's root; else what its id tells."""
        test, found = judged.observation.test, judged.observation.location
        file = found.file if found else test.partition("::")[0]
        return Location(self.job.path(file), found.line if found else None)

    def failed(self, judged: JudgedTest) -> bool:
        """Return whether a test failed."""
        return judged.observation.test in self.manner.failed

    def level(self, judged: JudgedTest, verdict: Verdict) -> Level | None:
        """Return how much a verdict asks for attention; None for not at all."""
        # What only the machine did is told once for all tests.
        quiet = verdict.outcome in {Outcome.WITHIN, Outcome.SHIFTED}
        if verdict.metric.name in judged.written or quiet:
            return None
        if verdict.outcome is Outcome.IMPROVED:
            # One by one, the gains of a fast machine would be accepted after all.
            return None if self.manner.shift else Level.NOTICE
        if verdict.outcome in MISSING and verdict.reason is not Reason.OTHER_DEFINITION:
            if self.missing is Missing.IGNORE:
                return None
            fails = self.missing is Missing.FAIL and self.failed(judged)
            return Level.ERROR if fails else Level.WARNING
        return Level.ERROR if self.failed(judged) else Level.WARNING

    def level_of_finding(self, finding: Finding) -> Level | None:
        """Return the same for what the checklist found."""
        if not finding.stands or finding.severity is Severity.INFO:
            return None
        return Level.ERROR if finding.fails and self.enforced else Level.WARNING
