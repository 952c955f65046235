"""What the checklist says of a test, in the summary of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.finding import RuleOutcome, Severity
from pytest_ttnn_perf.report.checklist import finding_lines
from pytest_ttnn_perf.report.lines import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.observation import Observation

#: The heaviest first; what is only for information comes last, without its evidence.
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def test_findings(observation: Observation) -> Iterator[Line]:
    """Lay out what was found in a test, and which of its waivers are for nothing."""
    found = [each for each in observation.findings if each.outcome is RuleOutcome.FOUND]
    for severity in _ORDER:
        for finding in found:
            if finding.severity is severity:
                first, *rest = finding_lines(finding)
                yield Line(f"{observation.test}: {first}", bad=severity is Severity.ERROR)
                if severity is not Severity.INFO:
                    yield from map(Line, rest)
    if found:
        yield Line("  ttnn-perf rules CODE says what to do about each")
    yield from _needless_waivers(observation)


def _needless_waivers(observation: Observation) -> Iterator[Line]:
    """Say which waivers are for nothing: they would hide what comes later."""
    outcomes = {finding.code: finding.outcome for finding in observation.findings}
    for code in observation.waived if outcomes else ():
        if code not in outcomes:
            yield Line(f"{observation.test}: waive names {code}, which is no rule that was asked")
        elif outcomes[code] is not RuleOutcome.FOUND:
            yield Line(f"{observation.test}: waive names {code}, which found nothing")
