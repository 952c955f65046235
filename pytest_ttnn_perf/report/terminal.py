"""The summary of a run, line by line; plugin and command line print the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted, inert_lines
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.records.finding import State
from pytest_ttnn_perf.records.hardware import UNKNOWN
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.records.verdict import (
    HEALTHY,
    QUIET,
    BaselineHealth,
    Outcome,
    Reason,
)
from pytest_ttnn_perf.report.checklist import (
    PROGRESS_TITLES,
    finding_lines,
    findings_count,
    findings_lines,
    first_step,
    progress_cells,
    waiver_lines,
)
from pytest_ttnn_perf.report.layout import DROPPED, GREEN, METRIC, NAME, Fit, Line, table_of
from pytest_ttnn_perf.report.notes import note_lines, recorded_only, ungated_lines
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    format_change,
    format_fraction,
    format_value,
    id_column,
    outcome_colour,
)
from pytest_ttnn_perf.report.sentences import (
    ACCEPTED,
    Rerun,
    accept_line,
    outcome_word,
    remedy_of,
    sentence,
    worst_first,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.baseline import Orphaned
    from pytest_ttnn_perf.records.finding import Finding, NeedlessWaiver, Progress
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.sweep import Sweep
    from pytest_ttnn_perf.records.verdict import Drifting, Shift, Verdict
    from pytest_ttnn_perf.report.layout import Table
    from pytest_ttnn_perf.report.sentences import Remedy


#: How many tests are named; the others are counted.
_MOST: Final = 5


def health_lines(health: BaselineHealth) -> Iterator[Line]:
    """Say which tests are required and did not run, and which baselines are stale."""
    if health.lost:
        count = counted(len(health.lost), "test")
        yield Line(f"failed: {count} with a baseline did not run, and required is set", bad=True)
        for test in health.lost[:_MOST]:
            yield Line(f"  {test}", bad=True)
        if len(health.lost) > _MOST:
            yield Line(f"  and {len(health.lost) - _MOST} more", bad=True)
        gone = "what is gone or renamed: ttnn-perf baseline prune, baseline rename"
        yield Line(f"  run those that are skipped; {gone}")
    for stale in health.stale:
        count = counted(len(stale.tests), "baseline")
        oldest = f"{stale.oldest} of {stale.oldest_at}"
        yield Line(f"stale: {count} {stale.why}, the oldest {oldest}")
        yield Line("  measure anew with: ttnn-perf calibrate TESTS --write")


def _unknown_hardware(tests: Sequence[JudgedTest]) -> Iterator[Line]:
    """Name results of which it is not known what they are of: boards are not told apart there."""
    # A capture that was there before is the same on all of them.
    fresh = (
        judged.observation
        for judged in tests
        if not any(observed.capture for observed in judged.observation.metrics.values())
    )
    own = (observation.hardware for observation in fresh)
    found = Counter(known.key for known in own if known and UNKNOWN in {known.arch, known.board})
    for key, count in sorted(found.items()):
        yield Line(f"board not known: {counted(count, 'test')} filed under {key}")
        yield Line("  say it in the test: ttnn_perf.hardware(board=...), or attach tt-smi -s")


def _orphan_lines(found: Orphaned | None) -> Iterator[Line]:
    if found is not None:
        from pytest_ttnn_perf.report.orphans import orphan_lines

        yield from orphan_lines(found)


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """What a summary needs beside the tests: what failed, how to run it again, what is silent.

    ``told`` are the tests whose failure the reader has seen already. ``verbosity`` is pytest's:
    above 0, all metrics are listed; below, failures alone.
    """

    failed: frozenset[str] = frozenset()
    rerun: Rerun = Rerun()
    silent: frozenset[Outcome] = QUIET
    shift: Shift | None = None
    drifts: tuple[Drifting, ...] = ()
    update: Update | None = None
    progress: tuple[tuple[str, Progress], ...] = ()
    needless: tuple[NeedlessWaiver, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    orphaned: Orphaned | None = None
    health: BaselineHealth = HEALTHY
    told: frozenset[str] = frozenset()
    verbosity: int = 0


def summary_lines(
    tests: Sequence[JudgedTest], *, summary_options: SummaryOptions
) -> Iterator[Line | Table]:
    """Lay out a judged run: a table, a sentence and a remedy for what needs one, a count."""
    failed, verbosity = summary_options.failed, summary_options.verbosity
    quiet = verbosity < 0
    listed = [one for one in tests if one.observation.test in failed] if quiet else tests
    rows = [row for judged in listed for row in _rows(judged, verbose=verbosity > 0)]
    if rows:
        yield from _COLUMNS.table(rows)
        yield Line("")
    sentences: list[Line | Table] = [
        line for judged in listed for line in _sentences(judged, summary_options=summary_options)
    ]
    if not quiet:
        if summary_options.sweeps:
            from pytest_ttnn_perf.report.sweeps import sweep_lines

            sentences += (line for one in summary_options.sweeps for line in sweep_lines(one))
        sentences += note_lines(tests, verbose=verbosity > 0)
        sentences += ungated_lines(tests, verbose=verbosity > 0)
        sentences += [line for judged in tests for line in _targets(judged)]
        found = list(findings_lines(tests, told=summary_options.told))
        sentences += [Line("")] if sentences and found else []
        sentences += found
        sentences += progress_lines(summary_options.progress, verbose=verbosity > 0)
    yield from map(Line, accept_line(tests, failed, summary_options.rerun))
    yield from sentences
    if not quiet:
        yield from waiver_lines(summary_options.needless)
        yield from _unknown_hardware(tests)
        yield from _drifts(summary_options)
        yield from _orphan_lines(summary_options.orphaned)
    yield from health_lines(summary_options.health)
    yield from _shift(summary_options)
    yield Line(count_line(tests, failed=len(failed)), bad=bool(failed), good=not failed)


def progress_lines(
    progress: Sequence[tuple[str, Progress]], *, verbose: bool = False
) -> Iterator[Line | Table]:
    """Lay out how far models of a run have come, and which step to take first.

    Those with nothing left to do are listed only if it is to be ``verbose``.
    """
    listed = [
        (test, steps)
        for test, steps in progress
        if verbose or any(step.state is State.OPEN for step in steps.all)
    ]
    if not listed:
        return
    yield Line("optimization progress")
    rows = [(test, *progress_cells(steps)) for test, steps in listed]
    # Where there is little room, what nobody has to do is left out first.
    fits = (
        Fit(drop=int(any(steps.all[place].state is State.OPEN for _, steps in listed)))
        for place in range(len(PROGRESS_TITLES) - 1)
    )
    yield table_of(PROGRESS_TITLES, rows, fits=(NAME, *fits))
    for test, steps in listed:
        yield from (Line(f"{test}: {line}") for line in first_step(steps))
    yield Line("")


def _drifts(summary_options: SummaryOptions) -> Iterator[Line]:
    if summary_options.drifts:
        from pytest_ttnn_perf.report.under_way import drift_line

        yield from map(Line, map(drift_line, summary_options.drifts))


def _shift(summary_options: SummaryOptions) -> Iterator[Line]:
    if summary_options.shift is None:
        return
    from pytest_ttnn_perf.report.under_way import shift_advice, shift_line

    yield Line(shift_line(summary_options.shift), bad=summary_options.shift.worse)
    if summary_options.update is Update.IMPROVED:
        yield Line("  only new baselines were written: a shifted machine is no standard")
    advice = shift_advice(
        summary_options.shift,
        summary_options.rerun.accept_all(),
        failed=bool(summary_options.failed),
    )
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
    for group in by_remedy(judged, verdicts, rerun=rerun, blocked=bool(findings)):
        lines += [f"{verdict.outcome.value}: {sentence(verdict)}" for verdict in group.verdicts]
        lines += by_op.beside(group)
        lines += [f"  {group.text}"] if group.remedy else []
    return "\n".join(map(inert_lines, [*lines, *_full_profile(judged, rerun)]))


def count_line(tests: Sequence[JudgedTest], *, failed: int) -> str:
    """Count the tests that were gated, the outcomes of metrics, and what was only recorded."""
    outcomes = ", ".join(f"{count} {word}" for word, count in outcome_counts(tests))
    gated = sum(1 for judged in tests if judged.verdicts)
    explaining = sum(
        verdict.reason is Reason.EXPLAINS for judged in tests for verdict in judged.verdicts
    )
    recorded = sum(len(recorded_only(judged)) for judged in tests)
    parts = [f"{counted(gated, 'test')} gated"]
    parts += [f"{failed} failed"] if failed else []
    written = sum(1 for judged in tests if judged.written)
    parts += [f"{written} written"] if written else []
    parts += [f"metrics: {outcomes}"] if outcomes else []
    if explaining:
        parts.append(
            f"{counted(explaining, 'part')} {'explains' if explaining == 1 else 'explain'} a change"
        )
    simulated = any(j.observation.has_ungated_simulated_times for j in tests)
    which = ", times of simulated devices among them" if simulated else ""
    parts += [f"{recorded} recorded only{which}"] if recorded else []
    ungated = (judged.observation for judged in tests if not judged.verdicts)
    # A point of a sweep that does not fit has its result.
    asked = sum(1 for one in ungated if one.asked and one.out_of_memory is None)
    parts += [f"{counted(asked, 'test')} without a gated number"] if asked else []
    parts += filter(None, [findings_count(tests)])
    return "; ".join(parts)


def outcome_counts(tests: Sequence[JudgedTest]) -> Iterator[tuple[str, int]]:
    """Yield how many metrics ended how; what explains another one does not count."""
    outcomes = Counter(
        outcome_word(verdict, judged)
        for judged in tests
        for verdict in judged.verdicts
        if verdict.reason is not Reason.EXPLAINS
    )
    for word in (*(outcome.value for outcome in Outcome), ACCEPTED):
        if outcomes[word]:
            yield word, outcomes[word]


class _Row(NamedTuple):
    """A metric in the table; ``more`` of its test are not listed. ``verdict``: None if recorded."""

    judged: JudgedTest
    metric: Metric
    verdict: Verdict | None
    more: int = 0

    @property
    def observed(self) -> float | None:
        if self.verdict is not None:
            return self.verdict.observed
        samples = self.judged.observation.metrics[self.metric.name].samples
        return representative(self.metric, samples) if samples else None


#: The first of a test stands for the others.
_ALIKE: Final = frozenset(
    {Outcome.WITHIN, Outcome.SHIFTED, Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE}
)


def _rows(judged: JudgedTest, *, verbose: bool) -> Iterator[_Row]:
    """Yield what the table lists of a test: what is not as before, or else its first metric."""
    if verbose:
        yield from (_Row(judged, verdict.metric, verdict) for verdict in judged.verdicts)
        metrics = judged.observation.metrics
        for name in recorded_only(judged):
            yield _Row(judged, metrics[name].metric, None)
        return
    listed: list[Verdict] = []
    for verdict in judged.verdicts:
        alike = verdict.outcome in _ALIKE and verdict.outcome in {one.outcome for one in listed}
        if verdict.outcome is not Outcome.WITHIN and not alike:
            listed.append(verdict)
    if not listed and judged.observation.sweep is None:  # a sweep lists its points itself
        listed = list(judged.verdicts[:1])
    more = len(judged.verdicts) - len(listed)
    for verdict in listed:
        yield _Row(judged, verdict.metric, verdict, more if verdict is listed[-1] else 0)


def _label(row: _Row) -> str:
    verdict, judged = row.verdict, row.judged
    if verdict is None:
        return "not measured" if row.observed is None else "recorded only"
    label, name = outcome_word(verdict, judged), verdict.metric.name
    if name in judged.written and verdict.outcome is not Outcome.WITHIN:
        observed = judged.observation.metrics.get(name)
        again = len(observed.confirmations) if observed else 0
        sessions = f" ({1 + again} sessions)" if again else ""
        if label == ACCEPTED:
            return f"{label}{sessions}"
        return f"{label}, {_what_was_written(verdict)}{sessions}"
    if verdict.reason is Reason.EXPLAINS:
        return f"explains {verdict.detail}"
    provisional = verdict.provisional and verdict.outcome is not Outcome.SHIFTED
    return f"{label} (provisional)" if provisional else label


def _short_label(row: _Row) -> str:
    verdict = row.verdict
    if verdict is None:
        # "recorded" is what a new baseline is.
        return "no value" if row.observed is None else "not gated"
    word = outcome_word(verdict, row.judged)
    if verdict.metric.name in row.judged.written and verdict.outcome is not Outcome.WITHIN:
        return word if word == ACCEPTED else _what_was_written(verdict)
    return "explains it" if verdict.reason is Reason.EXPLAINS else word


def _what_was_written(verdict: Verdict) -> str:
    return "recorded" if verdict.outcome is Outcome.NO_BASELINE else "accepted"


def _colour(row: _Row) -> str | None:
    colour = outcome_colour(row.verdict.outcome) if row.verdict else None
    return GREEN if colour and row.metric.name in row.judged.written else colour


_COLUMNS: Final[Columns[_Row]] = Columns(
    id_column(lambda row: row.judged.observation.test, name=""),
    Column("", lambda row: f"{row.metric.name}, {row.more} more" if row.more else row.metric.name,
           "metric", fit=METRIC),
    Column("", lambda row: format_value(row.metric, row.verdict and row.verdict.centre),
           "baseline", right=True, fit=DROPPED[2]),
    Column("", lambda row: format_value(row.metric, row.observed,
                                        beside=row.verdict and row.verdict.centre),
           "now", right=True, fit=DROPPED[3]),
    Column("", lambda row: format_change(row.verdict and row.verdict.change_as_read), "change",
           right=True),
    Column("", lambda row: format_fraction(row.verdict and row.verdict.limit_as_read), "limit",
           right=True, fit=DROPPED[1]),
    Column("", _label, "verdict", short=_short_label, colour=_colour),
)  # fmt: skip


class Resolved(NamedTuple):
    """Verdicts of one test that one command, or one piece of advice, resolves."""

    remedy: Remedy | None
    verdicts: list[Verdict]

    @property
    def text(self) -> str:
        """What to do, in one line; empty where there is nothing to be done."""
        return ": ".join(filter(None, self.remedy or ()))


def by_remedy(
    judged: JudgedTest,
    verdicts: Sequence[Verdict],
    *,
    rerun: Rerun,
    blocked: bool,
    shifted: bool = False,
) -> list[Resolved]:
    """Return verdicts by what is to be done about them, the worst first."""
    updates = rerun.updates(judged.observation.test, judged.observation.hardware)
    groups: dict[Remedy | None, Resolved] = {}
    # An update writes nothing of a test as long as a stored metric of it is not recorded.
    held_back = any(verdict.reason is Reason.NOT_RECORDED for verdict in verdicts)
    for verdict in worst_first(verdicts):
        # A mistake in the test comes first: no command resolves anything before it is fixed.
        settled = verdict.metric.name in judged.written or judged.observation.problems or blocked
        # One by one, the gains of a fast machine would be accepted after all.
        misleading = (shifted and verdict.outcome is Outcome.IMPROVED) or (
            held_back and verdict.outcome is Outcome.NO_BASELINE
        )
        found = None if settled or misleading else remedy_of(verdict, updates)
        groups.setdefault(found, Resolved(found, [])).verdicts.append(verdict)
    return list(groups.values())


def _full_profile(judged: JudgedTest, rerun: Rerun) -> Iterator[str]:
    """Say how to see more of a test that ran on a device, unless it is used wrongly."""
    command = rerun.full_profile(judged.observation)
    if command is not None and not judged.observation.problems:
        yield f"  full profile: {command}"


@dataclass(slots=True)
class _ByOp:
    """Which ops did it: said once, beside the first change of a time."""

    sentence: str | None

    def beside(self, group: Resolved) -> list[str]:
        """Return the line that belongs to a group."""
        changed = any(verdict.is_of_changed_time for verdict in group.verdicts)
        if self.sentence is None or not changed:
            return []
        text, self.sentence = self.sentence, None
        return [f"  by op: {text}"]


def worth_saying(verdict: Verdict, judged: JudgedTest, *, summary_options: SummaryOptions) -> bool:
    """The table says enough of what is as before, and of what was stored for the first time."""
    new = verdict.outcome is Outcome.NO_BASELINE and verdict.metric.name in judged.written
    # The one fails whatever may be missing, the other is not written whatever is asked for.
    told = verdict.reason in {Reason.OTHER_DEFINITION, Reason.OPS_CHANGED}
    return told or (verdict.outcome not in summary_options.silent and not new)


def _sentences(judged: JudgedTest, *, summary_options: SummaryOptions) -> Iterator[Line]:
    test = judged.observation.test
    failed, told = test in summary_options.failed, test in summary_options.told
    verdicts = [
        verdict
        for verdict in judged.verdicts
        if worth_saying(verdict, judged, summary_options=summary_options)
        # A failure was told of all that fails.
        and (not told or verdict.outcome is Outcome.IMPROVED)
    ]
    for problem in () if told else judged.observation.problems:
        yield Line(f"{test}: {problem}", bad=True)
    shifted = summary_options.shift is not None
    by_op = _ByOp(judged.by_op)
    blocked = failed and any(finding.fails for finding in judged.findings)
    for group in by_remedy(
        judged, verdicts, rerun=summary_options.rerun, blocked=blocked, shifted=shifted
    ):
        for verdict in group.verdicts:
            good = verdict.outcome is Outcome.IMPROVED or bool(judged.written)
            text = f"{outcome_word(verdict, judged)} {test}: {sentence(verdict)}"
            yield Line(text, bad=failed and not good, good=good)
        yield from map(Line, by_op.beside(group))
        if group.remedy:
            yield Line(f"  {group.text}")
    if failed and not told:
        yield from map(Line, _full_profile(judged, summary_options.rerun))


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
