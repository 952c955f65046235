"""What the checklist says of a test, in the summary of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.finding import RuleOutcome, Severity
from pytest_ttnn_perf.model.progress import State
from pytest_ttnn_perf.report.checklist import finding_lines
from pytest_ttnn_perf.report.lines import Line
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.progress import Progress

#: States in a table; a dash is what is not known.
_SHORT: Final = {
    State.DONE: "done",
    State.OPEN: "OPEN",
    State.NOT_MEASURED: "-",
    State.NOT_APPLICABLE: "n/a",
}
#: The heaviest first; what is only for information comes last, without its evidence.
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def test_findings(observation: Observation) -> Iterator[Line]:
    """Lay out what was found in a test, and which of its waivers are for nothing."""
    found = [each for each in observation.findings if each.outcome is RuleOutcome.FOUND]
    if observation.bottleneck is not None:
        yield Line(f"{observation.test}: bottleneck: {observation.bottleneck}")
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


def progress_lines(progress: Sequence[tuple[str, Progress]]) -> Iterator[Line]:
    """Lay out how far each model has come, and which step to take first."""
    if not progress:
        return
    yield Line("")
    yield Line("optimization progress")
    headings = ("test", *(step.name for step in progress[0][1].all), "first")
    rows = [
        (test, *(_SHORT[step.state] for step in each.all), _first(each)) for test, each in progress
    ]
    yield from map(Line, table_lines(headings, rows))
    yield Line("")


def _first(progress: Progress) -> str:
    if progress.first is None:
        return "-"
    step = progress.steps[progress.first - 1]
    kind = f" ({progress.kind.value})" if progress.kind else ""
    return f"{step.name}: {', '.join(step.open_rules)}{kind}"


def _needless_waivers(observation: Observation) -> Iterator[Line]:
    """Say which waivers are for nothing: they would hide what comes later."""
    outcomes = {finding.code: finding.outcome for finding in observation.findings}
    for code in observation.waived if outcomes else ():
        if code not in outcomes:
            yield Line(f"{observation.test}: waive names {code}, which is no rule that was asked")
        elif outcomes[code] is not RuleOutcome.FOUND:
            yield Line(f"{observation.test}: waive names {code}, which found nothing")
