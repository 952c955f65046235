"""Taking the results of recorded runs into the baselines: no pytest, no hardware."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.capture.run_record import read_run
from pytest_ttnn_perf.model.edit import Edits, TestEdit
from pytest_ttnn_perf.model.settings import Update
from pytest_ttnn_perf.report.progress import shift_line
from pytest_ttnn_perf.workflow.accept import Action, accepted_now, appended, plan
from pytest_ttnn_perf.workflow.changing import Changing, shown_then_done
from pytest_ttnn_perf.workflow.edits import file_edits, metric_edits
from pytest_ttnn_perf.workflow.joined import Measured, is_stored, joined
from pytest_ttnn_perf.workflow.judge import judge_observation, judge_run
from pytest_ttnn_perf.workflow.refusals import refusal_of
from pytest_ttnn_perf.workflow.selection import selected
from pytest_ttnn_perf.workflow.shifted import relabelled
from pytest_ttnn_perf.workflow.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.model.baseline import Accepted, TestBaseline
    from pytest_ttnn_perf.model.edit import Refusal
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest, Run
    from pytest_ttnn_perf.model.result import Result
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.workflow.accept import Change

_WORDS: Final = {
    Action.ADD: "recorded",
    Action.ACCEPT: "accepted",
    Action.REPLACE: "replaced",
    Action.REMOVE: "removed",
}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What is asked for: the records, the tests in them (all if none is named), what of it, why.

    ``options`` are those of this command that the next one needs too.
    """

    records: Sequence[Path]
    tests: Sequence[str]
    update: Update
    reason: str | None
    changing: Changing
    options: tuple[str, ...] = ()


def accept_records(asked: Acceptance, settings: Settings) -> Result:
    """Show what records change in the baselines, and change it.

    Raises:
        UsageError: the records cannot be taken together, or as a whole; a test is not in them.
        InputError: a record or a baseline is unreadable.
    """
    if asked.update is Update.ALL and not (asked.reason or "").strip():
        message = '--update all needs --reason "why the change is right"'
        raise UsageError(message)
    store = BaselineStore(settings.baselines)
    runs = {path: judge_run(read_run(path), store, settings) for path in asked.records}
    _check_together(runs)
    for path, run in runs.items():
        _check_whole(path, run, asked)
    accepting = _Accepting(asked, settings, store, runs)
    accepting.decide()
    edits = accepting.edits()
    return shown_then_done(edits, asked.changing, accepting.write, failed=bool(accepting.refusals))


def _check_together(runs: dict[Path, Run]) -> None:
    """Refuse records that are not measurements of the same thing."""
    (first, run), *others = runs.items()
    for path, other in others:
        ours, theirs = run.environment.commit, other.environment.commit
        if ours != theirs:
            message = f"{first} is of commit {ours or 'unknown'}, {path} of {theirs or 'unknown'}"
            raise UsageError(f"{message}: accept them one after the other")
    seen: dict[str, Path] = {}
    for path, each in runs.items():
        if each.id is not None and seen.setdefault(each.id, path) is not path:
            message = f"{seen[each.id]} and {path} are records of one run, {each.id}: give one"
            raise UsageError(message)


def _check_whole(path: Path, run: Run, asked: Acceptance) -> None:
    if not run.tests:
        raise InputError(path, "the run has no tests: there is nothing to accept")
    if not run.complete and not asked.tests:
        count = counted(len(run.tests), "test")
        message = f"{path}: the run was cut short after {count}, and may not have measured again"
        name = next(iter(run.tests))
        hint = f"accept those that you trust by name: ttnn-perf baseline accept {path} {name}"
        raise UsageError(f"{message} what looked different; {hint}")


@dataclass(slots=True)
class _Accepting:
    """Goes through the tests of some records, key by key."""

    asked: Acceptance
    settings: Settings
    store: BaselineStore
    runs: dict[Path, Run]
    refusals: list[Refusal] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _changes: dict[Hardware, dict[str, Change]] = field(default_factory=dict)

    def decide(self) -> None:
        """Find out what each test changes, or why it must not."""
        update = self._update()
        kept = again = 0
        for (hardware, test), measured in self._measured().items():
            stored = self.store.find(hardware, test)
            if all(is_stored(each, stored) for each in measured):
                again += 1
                continue
            judged = self._judged(hardware, measured, update)
            options = self.asked.options
            refusal = refusal_of(judged, measured, update, settings=self.settings, options=options)
            change = plan(judged, update, accepted=self._accepted())
            if refusal is not None:
                self.refusals.append(replace(refusal, key=hardware.key))
            elif change is not None:
                change = replace(change, appended=appended(each.judged for each in measured))
                self._changes.setdefault(hardware, {})[test] = change
            else:
                kept += 1
        if again:
            self.remarks.append(f"{counted(again, 'test')} already in the baselines")
        if kept:
            self.remarks.append(f"{counted(kept, 'test')} unchanged")
        self.remarks += self._provenance()

    def edits(self) -> Edits:
        """Return what is going to be written, as it would be at this moment."""
        tests, after = [], []
        for hardware, changes in self._changes.items():
            then: dict[str, TestBaseline | None] = {}
            for test, change in changes.items():
                before = self.store.find(hardware, test)
                then[test] = change(before)
                what = {
                    name: _WORDS.get(action) or _added(before, then[test], name)
                    for name, action in change.actions.items()
                    if action is not Action.KEEP
                }
                edit = metric_edits(before, then[test], what)
                tests.append(TestEdit(hardware.key, test, edit))
            after.append((hardware, then))
        files = file_edits(self.store, after, here=self.asked.changing.here)
        return Edits(tuple(tests), files, tuple(self.refusals), tuple(self.remarks))

    def write(self) -> Iterator[str]:
        """Write it; yield what could not be."""
        updates = Updates(self.store, self.asked.update)
        for hardware, changes in self._changes.items():
            for test, change in changes.items():
                updates.add(hardware, test, change)
        for refused in updates.write([]):
            yield refused.error

    def _update(self) -> Update:
        """Return what may be written: of a machine that has shifted, only what is new."""
        update = self.asked.update
        shifts = [run.shift for run in self.runs.values() if run.shift is not None]
        if not shifts or update is Update.ALL:
            return update
        self.remarks.append(shift_line(shifts[0]))
        self.remarks.append("  only new baselines are taken: a shifted machine sets no standard")
        return Update.NEW

    def _measured(self) -> dict[tuple[Hardware, str], list[Measured]]:
        tests = dict.fromkeys(test for run in self.runs.values() for test in run.tests)
        where = ", ".join(map(str, self.runs))
        found: dict[tuple[Hardware, str], list[Measured]] = {}
        for test in selected(tests, self.asked.tests, where=where):
            for path, run in self.runs.items():
                if test in run.tests:
                    hardware = run.tests[test].observation.hardware or run.hardware
                    assert hardware is not None, f"{test} has no hardware"
                    measured = Measured(str(path), run.tests[test])
                    found.setdefault((hardware, test), []).append(measured)
        return found

    def _judged(self, hardware: Hardware, measured: list[Measured], update: Update) -> JudgedTest:
        judged = judge_observation(joined(measured), self.store, hardware=hardware)
        shift = next((run.shift for run in self.runs.values() if run.shift), None)
        return relabelled(judged, shift) if shift and update is not Update.ALL else judged

    def _accepted(self) -> Accepted:
        """Return who the numbers come from: the machine and the commit of the record."""
        return accepted_now(next(iter(self.runs.values())).environment, self.asked.reason)

    def _provenance(self) -> Iterator[str]:
        if any(run.environment.dirty for run in self.runs.values()):
            yield "the code had changes that are in no commit when this was measured"


def _added(before: TestBaseline | None, after: TestBaseline | None, name: str) -> str:
    then = len(before.metrics[name].sessions) if before else 0
    now = len(after.metrics[name].sessions) if after else 0
    return f"{counted(now - then, 'session')} added"
