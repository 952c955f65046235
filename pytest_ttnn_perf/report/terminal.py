"""The summary of a run, line by line; plugin and command line print the same."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted, inert, inert_lines, shortened, visible
from pytest_ttnn_perf.records.settings import Missing, Update
from pytest_ttnn_perf.records.verdict import HEALTHY, QUIET, BaselineHealth, Outcome, Reason
from pytest_ttnn_perf.report.checklist import (
    finding_lines,
    findings_count,
    findings_lines,
    progress_lines,
    waiver_lines,
)
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Line,
    format_change,
    format_fraction,
    format_value,
)
from pytest_ttnn_perf.report.sentences import (
    ACCEPTED,
    Rerun,
    accept_line,
    command_line,
    outcome_word,
    place_of,
    remedy,
    rename_command,
    sentence,
)
from pytest_ttnn_perf.report.under_way import drift_line, shift_advice, shift_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.baseline import Orphaned
    from pytest_ttnn_perf.records.finding import Finding, NeedlessWaiver, Progress
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.verdict import Drifting, Shift, Verdict


def heading_line(
    settings: Settings, host: str | None, *, cwd: Path, inline: bool, profiler: str
) -> str:
    """Say what a run does, and for which key: that of the ``host``, if there are no devices."""
    key = f"key {host}" if host else "keys of the devices that tests open"
    if settings.replay is not None:
        key = "keys of the artifacts"
    parts = [f"gate on, {key}", f"baselines {shown_path(settings.baselines, cwd)}"]
    if settings.update:
        parts.append(f"update {settings.update.value}")
    if settings.missing is not Missing.FAIL:
        parts.append(f"missing {settings.missing.value}")
    if inline:
        parts.append("in this process, nothing is measured again")
    if settings.replay is None:
        return ", ".join([*parts, profiler])
    replayed = f"replaying {shown_path(settings.replay, cwd)}, times of this machine are left out"
    return ", ".join([*parts, replayed])


def closing_lines(
    *, missing: Path | None, written: Iterable[Path], records: Iterable[Path], cwd: Path
) -> Iterator[str]:
    """Say where the results went; ``missing`` is a folder of baselines that is not there."""
    if missing is not None:
        yield f"no baselines folder at {shown_path(missing, cwd)}"
    for path in written:
        yield f"wrote {shown_path(path, cwd)}"
    for path in records:
        yield f"run record: {shown_path(path, cwd)}"


def shown_path(path: Path, cwd: Path) -> str:
    """Return a path as seen from the folder the user stands in, if it is inside that."""
    nearer = Path(os.path.relpath(path, cwd))
    return str(path) if os.pardir in nearer.parts else str(nearer)


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


def orphan_lines(found: Orphaned | None) -> Iterator[Line]:
    """Name what a full run did not meet, and the commands that settle it."""
    if found is None:
        return
    keys = sorted({orphan.hardware.key for orphan in found.orphans})
    count = counted(len(found.orphans), "baseline")
    yield Line(f"orphaned: {count} of {', '.join(keys)} without a test")
    yield from (Line(f"  {text}") for text in renaming_texts(found))
    for orphan in found.orphans:
        if orphan.looks_like is None:
            yield Line(f"  {orphan.test} is gone")
        elif orphan.taken:
            yield Line(f"  {orphan.test} looks like {orphan.looks_like}, which has a baseline now")
    if found.renamings:
        yield Line("  not renamed? record the new test with --ttnn-perf-update=new")
    renamed = {orphan for renaming in found.renamings for orphan in renaming.orphans}
    if found.record is not None and not renamed.issuperset(found.orphans):
        argv = ("ttnn-perf", "baseline", "prune", place_of(found.record), *found.options)
        yield Line(f"  remove those that are gone with: {command_line(*argv)}")


def renaming_texts(found: Orphaned) -> Iterator[str]:
    """Say what looks renamed, with the command that renames its baselines."""
    for renaming in found.renamings:
        is_place = renaming.orphans[0].test != renaming.before
        tests = f" ({counted(len(renaming.orphans), 'baseline')})" if is_place else ""
        command = rename_command(renaming.before, renaming.after, found.options)
        yield f"renamed? {renaming.before} to {renaming.after}{tests}: {command}"


#: A longer one is cut in the middle, in the table only: it would push all else out of sight.
_LONGEST_ID: Final = 160


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """What a summary needs beside the tests: what failed, how to run it again, what is silent."""

    failed: frozenset[str] = frozenset()
    rerun: Rerun = Rerun()
    silent: frozenset[Outcome] = QUIET
    shift: Shift | None = None
    drifts: tuple[Drifting, ...] = ()
    update: Update | None = None
    progress: tuple[tuple[str, Progress], ...] = ()
    needless: tuple[NeedlessWaiver, ...] = ()
    orphaned: Orphaned | None = None
    health: BaselineHealth = HEALTHY


def summary_lines(
    tests: Sequence[JudgedTest], *, summary_options: SummaryOptions
) -> Iterator[Line]:
    """Lay out a judged run: a table, a sentence and a remedy for what needs one, a count."""
    # Ids and names are of others: none of them moves the cursor, or is a command to CI.
    return (
        line._replace(text=inert(line.text))
        for line in _summary(tests, summary_options=summary_options)
    )


def _summary(tests: Sequence[JudgedTest], *, summary_options: SummaryOptions) -> Iterator[Line]:
    failed = summary_options.failed
    rows = [(judged, verdict) for judged in tests for verdict in judged.verdicts]
    if rows:
        yield from map(Line, _COLUMNS.table(rows))
        yield Line("")
    sentences = [
        line for judged in tests for line in _sentences(judged, summary_options=summary_options)
    ]
    found = list(findings_lines(tests))
    yield from map(Line, accept_line(tests, failed, summary_options.rerun))
    yield from sentences
    yield from [Line("")] if sentences and found else []
    yield from found
    yield from progress_lines(summary_options.progress)
    yield from waiver_lines(summary_options.needless)
    yield from map(Line, map(drift_line, summary_options.drifts))
    yield from orphan_lines(summary_options.orphaned)
    yield from health_lines(summary_options.health)
    yield from _shift(summary_options)
    yield Line(count_line(tests, failed=len(failed)), bad=bool(failed), good=not failed)


def _shift(summary_options: SummaryOptions) -> Iterator[Line]:
    if summary_options.shift is None:
        return
    yield Line(shift_line(summary_options.shift), bad=summary_options.shift.worse)
    if summary_options.update is Update.IMPROVED:
        yield Line("  nothing was written but new baselines: a shifted machine sets no standard")
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
    for group in _by_remedy(judged, verdicts, rerun=rerun, blocked=bool(findings)):
        lines += [f"{verdict.outcome.value}: {sentence(verdict)}" for verdict in group.verdicts]
        lines += by_op.beside(group)
        lines += [f"  {group.remedy}"] if group.remedy else []
    return "\n".join(map(inert_lines, [*lines, *_full_profile(judged, rerun)]))


def count_line(tests: Sequence[JudgedTest], *, failed: int) -> str:
    """Count the tests that were gated, the outcomes of metrics, and what was only recorded."""
    outcomes = Counter(
        outcome_word(verdict, judged)
        for judged in tests
        for verdict in judged.verdicts
        if verdict.reason is not Reason.EXPLAINS
    )
    words = (*(outcome.value for outcome in Outcome), ACCEPTED)
    outcome_counts = ", ".join(f"{outcomes[word]} {word}" for word in words if outcomes[word])
    gated = sum(1 for judged in tests if judged.verdicts)
    recorded = 0
    for judged in tests:
        names = {v.metric.name for v in judged.verdicts if v.reason is not Reason.EXPLAINS}
        recorded += len(set(judged.observation.metrics) - names)
    parts = [f"{counted(gated, 'test')} gated"]
    parts += [f"{failed} failed"] if failed else []
    written = sum(1 for judged in tests if judged.written)
    parts += [f"{written} written"] if written else []
    parts += [f"metrics: {outcome_counts}"] if outcome_counts else []
    simulated = any(j.observation.has_ungated_simulated_times for j in tests)
    which = ", times of simulated devices among them" if simulated else ""
    parts += [f"{recorded} recorded only{which}"] if recorded else []
    parts += filter(None, [findings_count(tests)])
    return "; ".join(parts)


def _name(text: str) -> str:
    return shortened(visible(text), _LONGEST_ID)


def _label(verdict: Verdict, judged: JudgedTest) -> str:
    label, name = outcome_word(verdict, judged), verdict.metric.name
    if name in judged.written and verdict.outcome is not Outcome.WITHIN:
        observed = judged.observation.metrics.get(name)
        again = len(observed.confirmations) if observed else 0
        sessions = f" ({1 + again} sessions)" if again else ""
        if label == ACCEPTED:
            return f"{label}{sessions}"
        new = verdict.outcome is Outcome.NO_BASELINE
        return f"{label}, {'recorded' if new else 'accepted'}{sessions}"
    if verdict.reason is Reason.EXPLAINS:
        return f"explains {verdict.detail}"
    provisional = verdict.provisional and verdict.outcome is not Outcome.SHIFTED
    return f"{label} (provisional)" if provisional else label


_COLUMNS: Final[Columns[tuple[JudgedTest, Verdict]]] = Columns(
    Column("", lambda row: row[0].observation.test, "test",
           lambda row: _name(row[0].observation.test), once=True),
    Column("", lambda row: _name(row[1].metric.name), "metric"),
    Column("", lambda row: format_value(row[1].metric, row[1].centre), "baseline", right=True),
    Column("", lambda row: format_value(row[1].metric, row[1].observed, beside=row[1].centre),
           "now", right=True),
    Column("", lambda row: format_change(row[1].change_as_read), "change", right=True),
    Column("", lambda row: format_fraction(row[1].limit_as_read), "limit", right=True),
    Column("", lambda row: _label(row[1], row[0]), "verdict"),
)  # fmt: skip


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
        # A mistake in the test comes first: no command resolves anything before it is fixed.
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
        yield f"  full profile: {command}"


@dataclass(slots=True)
class _ByOp:
    """Which ops did it: said once, beside the first change of a time."""

    sentence: str | None

    def beside(self, group: _Group) -> list[str]:
        """Return the line that belongs to a group."""
        changed = any(verdict.is_of_changed_time for verdict in group.verdicts)
        if self.sentence is None or not changed:
            return []
        text, self.sentence = self.sentence, None
        return [f"  by op: {text}"]


def _worth_saying(verdict: Verdict, judged: JudgedTest, *, summary_options: SummaryOptions) -> bool:
    """The table says enough of what is as before, and of what was stored for the first time."""
    new = verdict.outcome is Outcome.NO_BASELINE and verdict.metric.name in judged.written
    mistaken = verdict.reason is Reason.OTHER_DEFINITION  # fails whatever may be missing
    return mistaken or (verdict.outcome not in summary_options.silent and not new)


def _sentences(judged: JudgedTest, *, summary_options: SummaryOptions) -> Iterator[Line]:
    test = judged.observation.test
    failed = test in summary_options.failed
    verdicts = [
        v for v in judged.verdicts if _worth_saying(v, judged, summary_options=summary_options)
    ]
    for problem in judged.observation.problems:
        yield Line(f"{test}: {problem}", bad=True)
    shifted = summary_options.shift is not None
    by_op = _ByOp(judged.by_op)
    blocked = failed and any(finding.fails for finding in judged.findings)
    for group in _by_remedy(
        judged, verdicts, rerun=summary_options.rerun, blocked=blocked, shifted=shifted
    ):
        for verdict in group.verdicts:
            good = verdict.outcome is Outcome.IMPROVED or bool(judged.written)
            text = f"{outcome_word(verdict, judged)} {test}: {sentence(verdict)}"
            yield Line(text, bad=failed and not good, good=good)
        yield from map(Line, by_op.beside(group))
        if group.remedy:
            yield Line(f"  {group.remedy}")
    yield from _notes(judged)
    yield from _targets(judged)
    if failed:
        yield from map(Line, _full_profile(judged, summary_options.rerun))


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


@dataclass(slots=True)
class Ticker:
    """Shows progress on stderr: one line that is rewritten, or a line per milestone in a log."""

    width: int = 0

    def show(self, line: str, milestone: bool) -> None:  # noqa: FBT001 (called by position)
        """Show how far it is."""
        line = inert(line)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line:<{self.width}}")
            self.width = len(line)
        elif milestone:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line that was rewritten."""
        if self.width:
            sys.stderr.write("\n")
