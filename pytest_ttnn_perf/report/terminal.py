"""The summary of a run, line by line; plugin and command line print the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.visible import shortened, visible, visible_lines
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.lapse import NO_LAPSES, Lapses
from pytest_ttnn_perf.model.metric import Source
from pytest_ttnn_perf.model.rerun import Rerun
from pytest_ttnn_perf.model.settings import Update
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.checklist import finding_lines
from pytest_ttnn_perf.report.findings import findings_count, findings_lines, waiver_lines
from pytest_ttnn_perf.report.lapses import lapse_lines
from pytest_ttnn_perf.report.lines import Line
from pytest_ttnn_perf.report.numbers import format_change, format_fraction, format_value
from pytest_ttnn_perf.report.optimization import progress_lines
from pytest_ttnn_perf.report.orphans import orphan_lines
from pytest_ttnn_perf.report.progress import drift_line, shift_advice, shift_line
from pytest_ttnn_perf.report.remedies import remedy
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.drift import Drifting
    from pytest_ttnn_perf.model.finding import Finding, NeedlessWaiver
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.orphan import Orphaned
    from pytest_ttnn_perf.model.progress import Progress
    from pytest_ttnn_perf.model.shift import Shift
    from pytest_ttnn_perf.model.verdict import Verdict

_HEADINGS: Final = ("test", "metric", "baseline", "now", "change", "limit", "verdict")
_NUMERIC: Final = frozenset({2, 3, 4, 5})
#: A longer one is cut in the middle, in the table only: it would push all else out of sight.
_LONGEST_ID: Final = 160


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is told: which tests failed, how to run one again, what needs no sentence."""

    failed: frozenset[str] = frozenset()
    rerun: Rerun = Rerun()
    silent: frozenset[Outcome] = frozenset({Outcome.WITHIN, Outcome.SHIFTED})
    shift: Shift | None = None
    drifts: tuple[Drifting, ...] = ()
    update: Update | None = None
    progress: tuple[tuple[str, Progress], ...] = ()
    needless: tuple[NeedlessWaiver, ...] = ()
    orphaned: Orphaned | None = None
    lapses: Lapses = NO_LAPSES


def summary_lines(tests: Sequence[JudgedTest], *, manner: Manner) -> Iterator[Line]:
    """Lay out a judged run: a table, a sentence and a remedy for what needs one, a count."""
    # Ids and names are of others: none of them moves the cursor or changes a colour.
    return (line._replace(text=visible(line.text)) for line in _summary(tests, manner=manner))


def _summary(tests: Sequence[JudgedTest], *, manner: Manner) -> Iterator[Line]:
    failed = manner.failed
    rows = [row for judged in tests for row in _rows(judged)]
    if rows:
        yield from map(Line, table_lines(_HEADINGS, rows, right=_NUMERIC))
        yield Line("")
    said = [line for judged in tests for line in _sentences(judged, manner=manner)]
    found = list(findings_lines(tests))
    yield from said
    yield from [Line("")] if said and found else []
    yield from found
    yield from progress_lines(manner.progress)
    yield from waiver_lines(manner.needless)
    yield from map(Line, map(drift_line, manner.drifts))
    yield from orphan_lines(manner.orphaned)
    yield from lapse_lines(manner.lapses)
    yield from _shift(manner)
    yield Line(count_line(tests, failed=len(failed)), bad=bool(failed), good=not failed)


def _shift(manner: Manner) -> Iterator[Line]:
    if manner.shift is None:
        return
    yield Line(shift_line(manner.shift), bad=manner.shift.worse)
    if manner.update is Update.IMPROVED:
        yield Line("  nothing was written but new baselines: a shifted machine sets no standard")
    advice = shift_advice(manner.shift, manner.rerun.accept_all(), failed=bool(manner.failed))
    yield from (Line(f"  {text}") for text in advice)


def failure_text(
    judged: JudgedTest,
    verdicts: Sequence[Verdict],
    *,
    rerun: Rerun,
    findings: Sequence[Finding] = (),
) -> str:
    """Return the whole text that a test fails with: every violation, not only the first."""
    lines = list(judged.observation.problems)
    lines += [line for finding in findings for line in finding_lines(finding)]
    by_op = _ByOp(judged.by_op)
    for group in _by_remedy(judged, verdicts, rerun=rerun, blocked=bool(findings)):
        lines += [f"{verdict.outcome.value}: {sentence(verdict)}" for verdict in group.verdicts]
        lines += by_op.beside(group)
        lines += [f"  {group.remedy}"] if group.remedy else []
    return "\n".join(map(visible_lines, [*lines, *_full_profile(judged, rerun)]))


def count_line(tests: Sequence[JudgedTest], *, failed: int) -> str:
    """Count what was judged and what was only recorded, so that silence never looks like a pass."""
    outcomes = Counter(
        verdict.outcome
        for judged in tests
        for verdict in judged.verdicts
        if verdict.reason is not Reason.EXPLAINS
    )
    outcome_counts = ", ".join(f"{outcomes[o]} {o.value}" for o in Outcome if outcomes[o])
    gated = sum(1 for judged in tests if judged.verdicts)
    recorded = sum(len(set(j.observation.metrics) - _judged_metrics(j)) for j in tests)
    parts = [f"{counted(gated, 'test')} gated"]
    parts += [f"{failed} failed"] if failed else []
    written = sum(1 for judged in tests if judged.written)
    parts += [f"{written} written"] if written else []
    parts += [f"metrics: {outcome_counts}"] if outcome_counts else []
    parts += [f"{recorded} recorded only"] if recorded else []
    parts += filter(None, [findings_count(tests)])
    return "; ".join(parts)


def _judged_metrics(judged: JudgedTest) -> set[str]:
    explains = Reason.EXPLAINS
    return {verdict.metric.name for verdict in judged.verdicts if verdict.reason is not explains}


def _rows(judged: JudgedTest) -> Iterator[tuple[str, ...]]:
    name = shortened(visible(judged.observation.test), _LONGEST_ID)
    for verdict in judged.verdicts:
        centre = verdict.centre
        yield (
            name,
            shortened(visible(verdict.metric.name), _LONGEST_ID),
            format_value(verdict.metric, centre),
            format_value(verdict.metric, verdict.observed, beside=centre),
            format_change(verdict.change_as_read),
            format_fraction(verdict.limit_as_read),
            _label(verdict, judged),
        )
        name = ""


def _label(verdict: Verdict, judged: JudgedTest) -> str:
    label, name = verdict.outcome.value, verdict.metric.name
    if name in judged.written and verdict.outcome is not Outcome.WITHIN:
        new = verdict.outcome is Outcome.NO_BASELINE
        observed = judged.observation.metrics.get(name)
        again = len(observed.confirmations) if observed else 0
        sessions = f" ({1 + again} sessions)" if again else ""
        return f"{label}, {'recorded' if new else 'accepted'}{sessions}"
    if verdict.reason is Reason.EXPLAINS:
        return f"explains {verdict.detail}"
    provisional = verdict.provisional and verdict.outcome is not Outcome.SHIFTED
    return f"{label} (provisional)" if provisional else label


class _Group(NamedTuple):
    """Verdicts of one test that one command resolves."""

    remedy: str | None
    verdicts: list[Verdict]


def _by_remedy(
    judged: JudgedTest,
    verdicts: Sequence[Verdict],
    *,
    rerun: Rerun,
    blocked: bool,
    shifted: bool = False,
) -> list[_Group]:
    updates = rerun.updates(judged.observation.test)
    groups: dict[str | None, _Group] = {}
    for verdict in verdicts:
        # A mistake in the test comes first: no command resolves anything before it is mended.
        settled = verdict.metric.name in judged.written or judged.observation.problems or blocked
        # One by one, the gains of a fast machine would be accepted after all.
        misleading = shifted and verdict.outcome is Outcome.IMPROVED
        advice = None if settled or misleading else remedy(verdict, updates)
        groups.setdefault(advice, _Group(advice, [])).verdicts.append(verdict)
    return list(groups.values())


def _full_profile(judged: JudgedTest, rerun: Rerun) -> Iterator[str]:
    """Say how to see more of a test that ran on a device, unless it is used wrongly."""
    command = rerun.full_profile(judged.observation)
    if command is not None and not judged.observation.problems:
        realtime = any(
            each.metric.source is Source.REALTIME for each in judged.observation.metrics.values()
        )
        yield f"  full profile{' (needs a Tracy-enabled ttnn)' if realtime else ''}: {command}"


@dataclass(slots=True)
class _ByOp:
    """Which ops did it: said once, beside the first change of a time."""

    sentence: str | None

    def beside(self, group: _Group) -> list[str]:
        """Return the line that belongs to a group."""
        changed = any(verdict.is_of_changed_time for verdict in group.verdicts)
        if self.sentence is None or not changed:
            return []
        said, self.sentence = self.sentence, None
        return [f"  by op: {said}"]


def _worth_saying(verdict: Verdict, judged: JudgedTest, *, manner: Manner) -> bool:
    """The table says enough of what is as before, and of what was stored for the first time."""
    new = verdict.outcome is Outcome.NO_BASELINE and verdict.metric.name in judged.written
    mistaken = verdict.reason is Reason.OTHER_DEFINITION  # fails whatever may be missing
    return mistaken or (verdict.outcome not in manner.silent and not new)


def _sentences(judged: JudgedTest, *, manner: Manner) -> Iterator[Line]:
    test = judged.observation.test
    failed = test in manner.failed
    said = [v for v in judged.verdicts if _worth_saying(v, judged, manner=manner)]
    for problem in judged.observation.problems:
        yield Line(f"{test}: {problem}", bad=True)
    shifted = manner.shift is not None
    by_op = _ByOp(judged.by_op)
    blocked = failed and any(finding.fails for finding in judged.findings)
    for group in _by_remedy(judged, said, rerun=manner.rerun, blocked=blocked, shifted=shifted):
        for verdict in group.verdicts:
            good = verdict.outcome is Outcome.IMPROVED or bool(judged.written)
            text = f"{verdict.outcome.value} {test}: {sentence(verdict)}"
            yield Line(text, bad=failed and not good, good=good)
        yield from map(Line, by_op.beside(group))
        if group.remedy:
            yield Line(f"  {group.remedy}")
    yield from _notes(judged)
    yield from _targets(judged)
    if failed:
        yield from map(Line, _full_profile(judged, manner.rerun))


def _notes(judged: JudgedTest) -> Iterator[Line]:
    """Say what is particular about a number that passed."""
    noted = {v.metric.name for v in judged.verdicts if v.detail is not None}
    for name, observed in judged.observation.metrics.items():
        if observed.note and name not in noted:
            yield Line(f"note {judged.observation.test}: {name}: {observed.note}")


def _targets(judged: JudgedTest) -> Iterator[Line]:
    for verdict in judged.verdicts:
        target = judged.target_of(verdict)
        if target is None or verdict.observed is None:
            continue
        now = format_value(verdict.metric, verdict.observed, beside=target)
        goal = format_value(verdict.metric, target)
        state = "reached" if judged.target_reached(verdict) else "not reached"
        yield Line(
            f"target {judged.observation.test}: {verdict.metric.name} {now}, target {goal}: {state}"
        )
