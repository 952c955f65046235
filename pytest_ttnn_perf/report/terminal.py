"""The summary of a run, and the lines printed before it."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from msgspec import Struct

from pytest_ttnn_perf.core.hardware import UNKNOWN
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.observation import QUIET, Outcome, Reason, value_of
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.text import counted, inert, inert_lines
from pytest_ttnn_perf.gate.health import BaselineHealth
from pytest_ttnn_perf.gate.judging import busy_text
from pytest_ttnn_perf.report.findings import (
    State,
    finding_lines,
    findings_count,
    findings_lines,
    first_step,
    open_steps,
)
from pytest_ttnn_perf.report.sentences import (
    PRINTED,
    Rerun,
    accept_line,
    change_in_words,
    command_line,
    label,
    note_lines,
    place_of,
    recorded_only,
    remedy_of,
    sentence,
    ungated_lines,
    worst_first,
    worst_tests_first,
)
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    GREEN,
    METRIC,
    NAME,
    OUTCOME_COLOURS,
    Column,
    Columns,
    Fit,
    Line,
    cut_end,
    format_change,
    format_fraction,
    format_value,
    id_column,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Shift, Verdict
    from pytest_ttnn_perf.gate.health import Orphan
    from pytest_ttnn_perf.gate.sweeps import Sweep
    from pytest_ttnn_perf.report.findings import Progress
    from pytest_ttnn_perf.report.sentences import Remedy
    from pytest_ttnn_perf.report.tables import Table


#: Back to the first column, and away with what stands in the line.
_CLEAR: Final = "\r\x1b[2K"


class LiveLine:
    """A line of a terminal that is rewritten, or a log."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self._is_shown = False

    def show(self, text: str) -> None:
        self._is_shown = True
        # One column less: some terminals go to the next line once the last one is written.
        self._write(_CLEAR + cut_end(inert(text), shutil.get_terminal_size().columns - 1))

    def progress(self, text: str, milestone: bool) -> None:  # noqa: FBT001 (called by position)
        if self.stream.isatty():
            self.show(text)
        elif milestone:
            self.stream.write(f"{inert(text)}\n")
            self.stream.flush()

    def clear(self) -> None:
        if self._is_shown:
            self._write(_CLEAR)
            self._is_shown = False

    def __enter__(self) -> LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


#: How many commands, or tests, are printed of many that are alike; the others are counted.
_MOST: Final = 5


def orphan_lines(
    orphans: Sequence[Orphan], *, record: str | None, options: Sequence[str]
) -> Iterator[Line]:
    yield Line(f"without a test: {_count(orphans)}")
    yield from (Line(f"  {orphan.test} is gone") for orphan in orphans)
    rename = command_line("ttnn-perf", "baseline", "rename", "OLD", "NEW", *options)
    yield Line(f"  keep those of renamed tests: {rename}")
    if record is not None:
        argv = ("ttnn-perf", "baseline", "prune", place_of(record), *options)
        yield Line(f"  remove those that are gone: {command_line(*argv)}")


def _count(orphans: Sequence[Orphan]) -> str:
    keys = sorted({orphan.hardware.key for orphan in orphans})
    return f"{counted(len(orphans), 'baseline')} of {', '.join(keys)}"


_CONFIRMED: Final = {
    Outcome.REGRESSED: "beyond its limit again",
    Outcome.SHIFTED: "as much slower as all tests",
}


def suspicion_line(test: str, suspects: Sequence[Verdict]) -> str:
    found = ", ".join(f"{v.metric.name} {change_in_words(v)}" for v in suspects)
    return f"ttnn-perf: {test}: {found}: to be measured again"


def device_pass_heading(tests: int, *, more_room: bool) -> str:
    again = " again, with more room: the profiler dropped markers" if more_room else ""
    return f"ttnn-perf: device pass: profiling {counted(tests, 'test')}{again}"


def confirm_heading(tests: int, controls: int, *, number: int, passes: int) -> str:
    what = [counted(tests, "test")] if tests else []
    what += [counted(controls, "control")] if controls else []
    return f"confirm {number}/{passes}: {' and '.join(what)} again in a fresh process"


def controls_line(controls: int, move: float) -> str:
    way = "slower" if move > 0 else "faster"
    return f"{counted(controls, 'control')}: {format_fraction(abs(move))} {way}"


def shift_refuted_line(shift: Shift) -> str:
    moved = f"{shift.moved} of {counted(shift.voting, 'test')}"
    return f"not the machine: {moved} moved, and the controls did not"


def confirm_line(test: str, verdict: Verdict) -> str:
    start = f"{test}: {verdict.metric.name}"
    if verdict.outcome is Outcome.NO_DATA or not verdict.confirmed:
        return f"{start} could not be confirmed"
    value = format_value(verdict.metric, verdict.confirmed[-1], beside=verdict.centre)
    then = format_value(verdict.metric, verdict.centre)
    result = _CONFIRMED.get(verdict.outcome, "within its limit now")
    return f"{start} {value}, baseline {then}: {result}"


def shift_line(shift: Shift) -> str:
    """Return how far tests moved together, without naming one cause."""
    way = "slower" if shift.worse else "faster"
    which = "all" if shift.moved == shift.voting else f"{shift.moved} of"
    # A time that is 8 % shorter reads as 8 % faster; the gate reckons it as a ratio.
    size = format_fraction(abs(shift.change))
    return (
        f"{which} {counted(shift.voting, 'test')} {size} {way}: the machine, or a change they share"
    )


def shift_advice(
    shift: Shift, tests: Iterable[JudgedTest], rerun: Rerun, *, failed: bool
) -> Iterator[tuple[str, str | None]]:
    """Yield lines after a shift's own, with their commands."""
    names = [
        judged.observation.test
        for judged in tests
        if any(verdict.outcome is Outcome.SHIFTED for verdict in judged.verdicts)
    ]
    if shift.differences:
        yield f"differs from baselines: {'; '.join(shift.differences)}", None
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    if names:
        yield f"tests: {', '.join(names[:_MOST] + more)}", None
    if shift.worse and not failed:
        yield "exit code 6: the run fails, no single test is to blame", None
    compare = rerun.compare(*(rerun.selection if more else names))
    if compare is not None:
        yield "compare with the merge base", compare
    yield "accept the slower times", rerun.accept_all()


def health_lines(health: BaselineHealth, rerun: Rerun) -> Iterator[Line]:
    if health.lost:
        count = counted(len(health.lost), "test")
        yield Line(f"failed: {count} with a baseline did not run, and required is set", bad=True)
        for test in health.lost[:_MOST]:
            yield Line(f"  {test}", bad=True)
        if len(health.lost) > _MOST:
            yield Line(f"  and {len(health.lost) - _MOST} more", bad=True)
        gone = "what is gone or renamed: ttnn-perf baseline prune, baseline rename"
        yield Line(f"  run those that are skipped; {gone}")
    if health.stale:
        count, (oldest, since) = counted(len(health.stale), "baseline"), health.stale[0]
        old = f"older than {health.days} days, the oldest {oldest} of {since[:10]}"
        yield Line(f"stale: {count} {old}")
        yield Line(f"  begin anew: {rerun.replace(*[test for test, _ in health.stale][:_MOST])}")


def _unknown_hardware(tests: Sequence[JudgedTest]) -> Iterator[Line]:
    # Boards are not told apart there; a capture that was there before is the same on all of them.
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


class SummaryOptions(Struct, frozen=True):
    """The inputs of a summary, next to the tests.

    ``told`` are the tests whose failure the reader has seen already. ``verbosity`` is pytest's:
    above 0, all metrics are listed; below, failures alone.
    """

    failed: frozenset[str] = frozenset()
    rerun: Rerun = Rerun()
    silent: frozenset[Outcome] = QUIET
    shift: Shift | None = None
    update: Update | None = None
    progress: tuple[tuple[str, Progress], ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    #: The record of the run, for the commands about orphans.
    record: str | None = None
    health: BaselineHealth = BaselineHealth()
    told: frozenset[str] = frozenset()
    verbosity: int = 0


def summary_lines(
    tests: Sequence[JudgedTest], *, summary_options: SummaryOptions
) -> Iterator[Line | Table]:
    failed, verbosity = summary_options.failed, summary_options.verbosity
    quiet, tests = verbosity < 0, worst_tests_first(tests, failed)
    listed = [one for one in tests if _is_worse(one, failed)] if quiet else tests
    rows = [row for judged in listed for row in _rows(judged, verbose=verbosity > 0)]
    if rows:
        yield from _COLUMNS.table(rows)
        yield Line("")
    sentences: list[Line | Table] = [
        line for judged in listed for line in _sentences(judged, summary_options=summary_options)
    ]
    if not quiet:
        if summary_options.sweeps:
            from pytest_ttnn_perf.report.sentences import sweep_lines

            sentences += (line for one in summary_options.sweeps for line in sweep_lines(one))
        sentences += note_lines(tests, verbose=verbosity > 0)
        sentences += ungated_lines(tests, verbose=verbosity > 0)
        sentences += [line for judged in tests for line in _targets(judged)]
        found = list(findings_lines(tests, told=summary_options.told, verbose=verbosity > 0))
        sentences += [Line("")] if sentences and found else []
        sentences += found
        sentences += progress_lines(summary_options.progress, verbose=verbosity > 0)
    yield from map(Line, accept_line(tests, failed, summary_options.rerun))
    yield from sentences
    if not quiet:
        yield from _unknown_hardware(tests)
        if summary_options.orphans:
            yield from orphan_lines(
                summary_options.orphans,
                record=summary_options.record,
                options=summary_options.rerun.baselines_option,
            )
    yield from health_lines(summary_options.health, summary_options.rerun)
    yield from _shift(tests, summary_options)
    yield Line(count_line(tests, failed=len(failed)), bad=bool(failed), good=not failed)


def _is_worse(judged: JudgedTest, failed: frozenset[str]) -> bool:
    """Return whether a test failed, or has too few runs to fail."""
    return judged.observation.test in failed or any(
        verdict.provisional
        and verdict.outcome is Outcome.REGRESSED
        and verdict.metric.name not in judged.written
        for verdict in judged.verdicts
    )


def progress_lines(
    progress: Sequence[tuple[str, Progress]], *, verbose: bool = False
) -> Iterator[Line | Table]:
    """Lay out the open steps of models; finished models if ``verbose``."""
    rows = [
        (test, *open_steps(steps), next(first_step(steps), "").removeprefix("first: "))
        for test, steps in progress
        if verbose or any(step.state is State.OPEN for step in steps.all)
    ]
    if rows:
        yield Line("optimization progress")
        fits = (NAME, Fit(), BELOW, BELOW)
        yield table_of(("test", "done", "open steps", "first"), rows, fits=fits)
        yield Line("")


def _shift(tests: Sequence[JudgedTest], summary_options: SummaryOptions) -> Iterator[Line]:
    shift, failed = summary_options.shift, bool(summary_options.failed)
    if shift is None:
        return
    yield Line(f"{Outcome.SHIFTED.value}: {shift_line(shift)}", bad=shift.worse)
    if summary_options.update is Update.IMPROVED:
        yield Line("  all tests moved, so only new baselines were written")
    advice = shift_advice(shift, tests, summary_options.rerun, failed=failed)
    yield from (Line(indented(*each)) for each in advice)


def failure_text(
    judged: JudgedTest,
    verdicts: Sequence[Verdict],
    *,
    rerun: Rerun,
    findings: Sequence[Finding] = (),
    verbose: bool = False,
) -> str:
    lines = list(judged.observation.problems)
    lines += [line for finding in findings for line in finding_lines(finding)]
    groups = by_remedy(judged, verdicts, rerun=rerun, blocked=bool(findings))
    for text, command, verdict in verdict_lines(judged, groups, rerun=rerun, verbose=verbose):
        lines.append(f"{label(verdict)}: {text}" if verdict else indented(text, command))
    return "\n".join(map(inert_lines, lines))


def indented(text: str, command: str | None) -> str:
    return "  " + ": ".join(filter(None, (text, command)))


def verdict_lines(
    judged: JudgedTest,
    groups: Mapping[Remedy | None, Sequence[Verdict]],
    *,
    rerun: Rerun,
    verbose: bool = False,
) -> Iterator[tuple[str, str | None, Verdict | None]]:
    """Yield sentences with verdicts, then cause, note, remedy and command."""
    caused = False
    for remedy, own in groups.items():
        for verdict, more in _alike(own, verbose=verbose):
            yield sentence(verdict, more=more), None, verdict
        if not caused and any(verdict.is_of_changed_time for verdict in own):
            caused = True
            yield from ((*each, None) for each in _causes(judged, own, rerun))
        if remedy:
            yield *remedy, None


def _alike(verdicts: Sequence[Verdict], *, verbose: bool) -> Iterator[tuple[Verdict, int]]:
    """Yield verdicts, and how many more have no baseline for that reason."""
    groups: dict[object, list[Verdict]] = {}
    for verdict in verdicts:
        missing = verdict.outcome is Outcome.NO_BASELINE and not verbose
        alike = (verdict.reason, verdict.detail) if missing else verdict.metric.name
        groups.setdefault(alike, []).append(verdict)
    yield from ((own[0], len(own) - 1) for own in groups.values())


def _causes(
    judged: JudgedTest, verdicts: Sequence[Verdict], rerun: Rerun
) -> Iterator[tuple[str, str | None]]:
    slower = any(verdict.outcome is Outcome.REGRESSED for verdict in verdicts)
    # A busy host changes no times of a device.
    of_host = any(verdict.metric.source is Source.WALL for verdict in verdicts)
    busy = busy_text(judged.observation.environment) if slower and of_host else None
    if judged.by_op:
        yield f"cause: {judged.by_op}", None
    elif (
        slower
        and not any(
            judged.observation.metrics[verdict.metric.name].rounds
            for verdict in verdicts
            if verdict.metric.name in judged.observation.metrics
        )
        and (compare := rerun.compare(judged.observation.test))
    ):
        yield "cause: unknown; compare", compare
    if busy:
        yield f"note: {busy}", None


_UNGATED: Final = frozenset({Reason.NOTHING_GATED, Reason.NOTHING_TIMED})


def count_line(tests: Sequence[JudgedTest], *, failed: int) -> str:
    outcomes = ", ".join(f"{count} {word}" for word, count in outcome_counts(tests))
    ungated = [j.observation for j in tests if all(v.reason in _UNGATED for v in j.verdicts)]
    gated = len(tests) - len(ungated)
    recorded = sum(len(recorded_only(judged)) for judged in tests)
    parts = [f"{counted(gated, 'test')} gated"]
    parts += [f"{failed} failed"] if failed else []
    written = sum(1 for judged in tests if judged.written)
    parts += [f"{written} recorded"] if written else []
    parts += [f"metrics: {outcomes}"] if outcomes else []
    parts += [f"{recorded} recorded only"] if recorded else []
    # A point of a sweep that does not fit has its result.
    asked = sum(1 for one in ungated if one.asked and not one.out_of_memory)
    parts += [f"{counted(asked, 'test')} without a gated number"] if asked else []
    parts += filter(None, [findings_count(tests)])
    return "; ".join(parts)


def outcome_counts(tests: Sequence[JudgedTest]) -> Iterator[tuple[str, int]]:
    outcomes = Counter(
        label(verdict, judged)
        for judged in tests
        for verdict in judged.verdicts
        if verdict.reason is not Reason.EXPLAINS
    )
    for word in (*(outcome.value for outcome in Outcome), *PRINTED):
        if outcomes[word]:
            yield word, outcomes[word]


class _Row(NamedTuple):
    """A metric in the table; ``more`` of its test are not listed."""

    judged: JudgedTest
    metric: Metric
    verdict: Verdict | None
    more: int = 0

    @property
    def observed(self) -> float | None:
        return value_of(self.judged.observation.metrics.get(self.metric.name), self.verdict)


#: The first of a test stands for the others.
_ALIKE: Final = frozenset(
    {Outcome.WITHIN, Outcome.SHIFTED, Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE}
)


def _rows(judged: JudgedTest, *, verbose: bool) -> Iterator[_Row]:
    """Yield the changed metrics of a test, or its first."""
    if verbose:
        yield from (_Row(judged, verdict.metric, verdict) for verdict in judged.verdicts)
        metrics = judged.observation.metrics
        for name in recorded_only(judged):
            yield _Row(judged, metrics[name].metric, None)
        return
    listed: list[Verdict] = []
    for verdict in worst_first(judged.verdicts):
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
    if verdict.reason is Reason.EXPLAINS and verdict.metric.name not in judged.written:
        return f"explains {verdict.detail}"
    return label(verdict, judged)


def _colour(row: _Row) -> str | None:
    colour = OUTCOME_COLOURS.get(row.verdict.outcome) if row.verdict else None
    return GREEN if colour and row.metric.name in row.judged.written else colour


_COLUMNS: Final[Columns[_Row]] = Columns(
    id_column(lambda row: row.judged.observation.test, name=""),
    Column("", lambda row: f"{row.metric.name}, {row.more} more" if row.more else row.metric.name,
           "metric", fit=METRIC),
    Column("", lambda row: format_value(row.metric, row.verdict.centre if row.verdict else None),
           "baseline", right=True, fit=DROPPED[2]),
    Column("", lambda row: format_value(row.metric, row.observed,
                                        beside=row.verdict.centre if row.verdict else None),
           "now", right=True, fit=DROPPED[3]),
    Column("", lambda row: format_change(row.verdict.change_as_read if row.verdict else None),
           "change", right=True),
    Column("", lambda row: format_fraction(row.verdict.limit_as_read if row.verdict else None),
           "limit", right=True, fit=DROPPED[1]),
    Column("", _label, "verdict", fit=Fit(least=14), colour=_colour),
)  # fmt: skip


def by_remedy(
    judged: JudgedTest,
    verdicts: Sequence[Verdict],
    *,
    rerun: Rerun,
    blocked: bool,
    shifted: bool = False,
) -> dict[Remedy | None, list[Verdict]]:
    """Group verdicts by their remedy, the worst first."""
    updates = rerun.updates(judged.observation.test, judged.observation.hardware)
    groups: dict[Remedy | None, list[Verdict]] = {}
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
        groups.setdefault(found, []).append(verdict)
    return groups


def worth_saying(verdict: Verdict, judged: JudgedTest, *, summary_options: SummaryOptions) -> bool:
    """Return whether the table does not say enough of a verdict."""
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
    blocked = failed and any(finding.fails for finding in judged.findings)
    groups = by_remedy(
        judged, verdicts, rerun=summary_options.rerun, blocked=blocked, shifted=shifted
    )
    rerun, verbose = summary_options.rerun, summary_options.verbosity > 0
    for text, command, verdict in verdict_lines(judged, groups, rerun=rerun, verbose=verbose):
        if verdict is None:
            yield Line(indented(text, command))
            continue
        good = verdict.outcome is Outcome.IMPROVED or bool(judged.written)
        yield Line(f"{label(verdict, judged)} {test}: {text}", bad=failed and not good, good=good)


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
