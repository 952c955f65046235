"""The summary of a run, and the lines printed before it."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from msgspec import Struct

from pytest_ttnn_perf.core.hardware import UNKNOWN
from pytest_ttnn_perf.core.metric import representative
from pytest_ttnn_perf.core.observation import QUIET, Outcome, Reason
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.text import counted, inert, inert_lines
from pytest_ttnn_perf.gate.health import BaselineHealth
from pytest_ttnn_perf.report.findings import (
    PROGRESS_TITLES,
    State,
    finding_lines,
    findings_count,
    findings_lines,
    first_step,
    progress_cells,
)
from pytest_ttnn_perf.report.sentences import (
    ACCEPTED,
    Rerun,
    accept_line,
    change_in_words,
    command_line,
    note_lines,
    outcome_word,
    place_of,
    recorded_only,
    remedy_of,
    rename_command,
    sentence,
    ungated_lines,
    worst_first,
)
from pytest_ttnn_perf.report.tables import (
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
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, Shift, Verdict
    from pytest_ttnn_perf.gate.health import Orphan, Renaming
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
    orphans: Sequence[Orphan],
    renamings: Sequence[Renaming],
    *,
    record: str | None,
    options: Sequence[str],
) -> Iterator[Line]:
    yield Line(f"orphaned: {_count(orphans)} without a test")
    yield from (Line(f"  {text}") for text in renaming_texts(renamings, options))
    gone = [orphan for orphan in orphans if orphan.looks_like is None]
    yield from (Line(f"  {orphan.test} is gone") for orphan in gone)
    if renamings:
        yield Line("  not renamed? record the new test with --ttnn-perf-update=new")
    if record is not None and gone:
        argv = ("ttnn-perf", "baseline", "prune", place_of(record), *options)
        yield Line(f"  remove those that are gone with: {command_line(*argv)}")


def renaming_texts(renamings: Sequence[Renaming], options: Sequence[str]) -> Iterator[str]:
    for before, after, orphans in renamings:
        is_place = orphans[0].test != before
        tests = f" ({counted(len(orphans), 'baseline')})" if is_place else ""
        command = rename_command(before, after, options)
        yield f"renamed? {before} to {after}{tests}: {command}"


def _count(orphans: Sequence[Orphan]) -> str:
    keys = sorted({orphan.hardware.key for orphan in orphans})
    return f"{counted(len(orphans), 'baseline')} of {', '.join(keys)}"


_CONFIRMED: Final = {
    Outcome.REGRESSED: "beyond its limit again",
    Outcome.SHIFTED: "only as slow as the machine",
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
    again = f"measuring {' and '.join(what)} again in a fresh process"
    return f"ttnn-perf: confirm pass {number} of {passes}: {again}"


def controls_line(controls: int, move: float) -> str:
    way = "as fast as"
    if format_change(move) != format_change(0):
        way = f"{format_fraction(abs(move))} {'slower' if move > 0 else 'faster'} than"
    whose = "its baseline" if controls == 1 else "their baselines"
    return f"ttnn-perf: {counted(controls, 'control')}: {way} {whose}"


def shift_refuted_line(shift: Shift) -> str:
    moved = f"{shift.moved} of {counted(shift.voting, 'test')}"
    return f"ttnn-perf: not the environment: {moved} moved, and the controls did not"


def confirm_line(test: str, verdict: Verdict) -> str:
    if verdict.outcome is Outcome.NO_DATA or not verdict.confirmed:
        return f"ttnn-perf: {test}: {verdict.metric.name} could not be confirmed"
    value = format_value(verdict.metric, verdict.confirmed[-1], beside=verdict.centre)
    then = format_value(verdict.metric, verdict.centre)
    result = _CONFIRMED.get(verdict.outcome, "within its limit now")
    return f"ttnn-perf: {test}: {verdict.metric.name} {value}, baseline {then}: {result}"


def shift_line(shift: Shift) -> str:
    return f"environment shifted: {shift_size(shift)}"


def shift_size(shift: Shift) -> str:
    way = "slower" if shift.worse else "faster"
    # A time that is 8 % shorter reads as 8 % faster; the gate reckons it as a ratio.
    size = format_fraction(abs(shift.change))
    moved = f"{shift.moved} of {counted(shift.voting, 'test')} moved the same way"
    differs = "; ".join(shift.differences) or "nothing that is recorded differs"
    return f"{size} {way} as a whole ({moved}); {differs}"


def shift_advice(shift: Shift, accept: str, *, failed: bool) -> Iterator[str]:
    if shift.worse and not failed:
        yield "no single test failed, but none is known to have passed: exit code 6"
    yield "run it again on a machine in the state in which the baselines were accepted"
    yield "the machine, or a change that all tests share? compare in turns: ttnn-perf ab REF"
    yield f"if it should stay: {accept}"


def health_lines(health: BaselineHealth) -> Iterator[Line]:
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
        yield Line(f"stale: {stale}")
        yield Line("  measure anew with: pytest --ttnn-perf-update=all TESTS")


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
    orphaned: tuple[Sequence[Orphan], Sequence[Renaming]] | None = None
    #: The record of the run, for the commands about orphans.
    record: str | None = None
    health: BaselineHealth = BaselineHealth()
    told: frozenset[str] = frozenset()
    verbosity: int = 0


def summary_lines(
    tests: Sequence[JudgedTest], *, summary_options: SummaryOptions
) -> Iterator[Line | Table]:
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
            from pytest_ttnn_perf.report.sentences import sweep_lines

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
        yield from _unknown_hardware(tests)
        if summary_options.orphaned is not None:
            yield from orphan_lines(
                *summary_options.orphaned,
                record=summary_options.record,
                options=summary_options.rerun.baselines_option,
            )
    yield from health_lines(summary_options.health)
    yield from _shift(summary_options)
    yield Line(count_line(tests, failed=len(failed)), bad=bool(failed), good=not failed)


def progress_lines(
    progress: Sequence[tuple[str, Progress]], *, verbose: bool = False
) -> Iterator[Line | Table]:
    """Lay out the progress of models; finished ones only if ``verbose``."""
    listed = [
        (test, steps)
        for test, steps in progress
        if verbose or any(step.state is State.OPEN for step in steps.all)
    ]
    if not listed:
        return
    yield Line("optimization progress")
    rows = [(test, *progress_cells(steps)) for test, steps in listed]
    # Where there is little room, finished steps are left out first.
    fits = (
        Fit(drop=int(any(steps.all[place].state is State.OPEN for _, steps in listed)))
        for place in range(len(PROGRESS_TITLES) - 1)
    )
    yield table_of(PROGRESS_TITLES, rows, fits=(NAME, *fits))
    for test, steps in listed:
        yield from (Line(f"{test}: {line}") for line in first_step(steps))
    yield Line("")


def _shift(summary_options: SummaryOptions) -> Iterator[Line]:
    if summary_options.shift is None:
        return
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
    lines = list(judged.observation.problems)
    lines += [line for finding in findings for line in finding_lines(finding)]
    groups = by_remedy(judged, verdicts, rerun=rerun, blocked=bool(findings))
    for remedy, own in groups.items():
        lines += [f"{verdict.outcome.value}: {sentence(verdict)}" for verdict in own]
        lines += _by_op(judged, own, groups)
        lines += [f"  {remedy}"] if remedy else []
    return "\n".join(map(inert_lines, lines))


def count_line(tests: Sequence[JudgedTest], *, failed: int) -> str:
    outcomes = ", ".join(f"{count} {word}" for word, count in outcome_counts(tests))
    gated = sum(1 for judged in tests if judged.verdicts)
    recorded = sum(len(recorded_only(judged)) for judged in tests)
    parts = [f"{counted(gated, 'test')} gated"]
    parts += [f"{failed} failed"] if failed else []
    written = sum(1 for judged in tests if judged.written)
    parts += [f"{written} written"] if written else []
    parts += [f"metrics: {outcomes}"] if outcomes else []
    parts += [f"{recorded} recorded only"] if recorded else []
    ungated = (judged.observation for judged in tests if not judged.verdicts)
    # A point of a sweep that does not fit has its result.
    asked = sum(1 for one in ungated if one.asked and not one.out_of_memory)
    parts += [f"{counted(asked, 'test')} without a gated number"] if asked else []
    parts += filter(None, [findings_count(tests)])
    return "; ".join(parts)


def outcome_counts(tests: Sequence[JudgedTest]) -> Iterator[tuple[str, int]]:
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
    """A metric in the table; ``more`` of its test are not listed."""

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
    """Yield the changed metrics of a test, or its first."""
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
        return "recorded" if verdict.outcome is Outcome.NO_BASELINE else ACCEPTED
    if verdict.reason is Reason.EXPLAINS:
        return f"explains {verdict.detail}"
    return label


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


def _by_op(
    judged: JudgedTest, group: Sequence[Verdict], groups: Mapping[Remedy | None, list[Verdict]]
) -> list[str]:
    changed = (own for own in groups.values() if any(v.is_of_changed_time for v in own))
    return [f"  by op: {judged.by_op}"] if judged.by_op and next(changed, None) is group else []


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
    for remedy, own in groups.items():
        for verdict in own:
            good = verdict.outcome is Outcome.IMPROVED or bool(judged.written)
            text = f"{outcome_word(verdict, judged)} {test}: {sentence(verdict)}"
            yield Line(text, bad=failed and not good, good=good)
        yield from map(Line, _by_op(judged, own, groups))
        if remedy:
            yield Line(f"  {remedy}")


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
