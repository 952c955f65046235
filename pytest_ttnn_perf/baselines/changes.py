"""Changes to stored baselines: giving them another name, and merging two branches."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.records.baseline import (
    MAX_SESSIONS,
    MetricBaseline,
    TestBaseline,
    key_folder,
)
from pytest_ttnn_perf.records.settings import Take

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import Change
    from pytest_ttnn_perf.records.baseline import Accepted, BaselineFile, Session
    from pytest_ttnn_perf.records.hardware import Hardware


@dataclass(frozen=True, slots=True)
class Conflict:
    """A test that both sides changed; None is a side that removed it. ``taken`` is whose was kept.

    ``settled``: the user had said whose to take.
    """

    test: str
    ours: TestBaseline | None
    theirs: TestBaseline | None
    taken: Take
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """The file, what could not be joined, and the tests that took sessions of both sides."""

    file: BaselineFile
    conflicts: tuple[Conflict, ...] = ()
    joined: tuple[str, ...] = ()

    @property
    def unsettled(self) -> tuple[Conflict, ...]:
        """The conflicts that somebody must look at."""
        return tuple(conflict for conflict in self.conflicts if not conflict.settled)


def move(
    root: Path, moves: Mapping[Hardware, Mapping[str, str]], *, to: Hardware | None = None
) -> None:
    """Give tests new ids, or another key, with their op tables: all of them, or none.

    Raises:
        UsageError: a new id has a baseline already, and another one; nothing was moved.
        InputError: a file is malformed; nothing was moved.
        WriteError: a file cannot be written; nothing was moved.
    """
    store = BaselineStore(root)
    with store.locked():
        changes: dict[Hardware, dict[str, Change]] = {}
        for hardware, names in moves.items():
            own = changes.setdefault(hardware, {})
            goal = changes.setdefault(to or hardware, {})
            for before, after in names.items():
                found = store.find(hardware, before)
                if found is None:
                    continue
                check_free(store, hardware, before, after, to=to)
                moved = found.renamed_from(hardware.key, before)
                goal[after] = _put(_with_table(store, hardware, before, moved))
                own.setdefault(before, _nothing)  # another test may take its id
        store.apply(changes)


def check_free(
    store: BaselineStore,
    hardware: Hardware,
    before: str,
    after: str,
    *,
    to: Hardware | None = None,
) -> None:
    """Raise UsageError if a test cannot take an id; a move that was cut short may be ended."""
    goal = to or hardware
    found, taken = store.find(hardware, before), store.find(goal, after)
    if taken is None or found is None or _content(found) == _content(taken):
        return
    message = f"{after} has a baseline of its own on {goal.key}, accepted {taken.accepted.at}"
    raise UsageError(f"{message}: remove it with ttnn-perf baseline forget first, or leave both")


def _content(test: TestBaseline) -> TestBaseline:
    return replace(test, ops=None, op_table=None, formerly=())


def _with_table(
    store: BaselineStore, hardware: Hardware, name: str, test: TestBaseline
) -> TestBaseline:
    """Return a baseline with its op table in hand; one whose table is missing goes without."""
    if test.ops is None:
        return test
    try:
        table = store.ops_of(hardware, name)
    except InputError:
        if os.path.lexists(key_folder(store.root, hardware) / test.ops):
            raise
        table = None
    return replace(test, ops=None, op_table=table)


def _put(test: TestBaseline) -> Change:
    return lambda _: test


def _nothing(_: TestBaseline | None) -> None:
    return None


def merge_files(
    base: BaselineFile | None, ours: BaselineFile, theirs: BaselineFile, *, take: Take | None = None
) -> Merged:
    """Merge two versions of a file that have ``base`` in common; None where both are new.

    The same whichever side is called ours, but for tests in conflict: without ``take`` those keep
    ours. Both sides are of one hardware.
    """
    before: Mapping[str, TestBaseline] = base.tests if base else {}
    tests: dict[str, TestBaseline] = {}
    conflicts, joined = [], []
    for name in sorted({*before, *ours.tests, *theirs.tests}):
        then, mine, other = before.get(name), ours.tests.get(name), theirs.tests.get(name)
        if other in (mine, then):
            merged = mine
        elif mine == then:
            merged = other
        else:
            merged = _reconcile(then, mine, other)
            if merged is None:
                conflict = _decided(name, mine, other, take)
                conflicts.append(conflict)
                merged = mine if conflict.taken is Take.OURS else other
            elif merged not in (mine, other):
                joined.append(name)
        if merged is not None:
            tests[name] = merged
    file = replace(ours, tests=tests, test_file=ours.test_file or theirs.test_file)
    return Merged(file, tuple(conflicts), tuple(joined))


def _reconcile(
    base: TestBaseline | None, ours: TestBaseline | None, theirs: TestBaseline | None
) -> TestBaseline | None:
    """Return what two changes of one test come to; None if they contradict each other."""
    if ours is None or theirs is None:
        return None
    if (ours.metrics, ours.configuration) == (theirs.metrics, theirs.configuration):
        # The same numbers, say of one record, accepted twice.
        return max(ours, theirs, key=lambda test: (*_moment(test.accepted), test.ops or ""))
    if base is None:
        return None
    added = _appended(base, ours), _appended(base, theirs)
    if added == (True, True):
        return _joined(base, ours, theirs)
    # Sessions of the numbers that the other side has replaced tell nothing of the new ones.
    if added == (False, True) and ours.accepted != base.accepted:
        return ours
    if added == (True, False) and theirs.accepted != base.accepted:
        return theirs
    return None


def _appended(base: TestBaseline, now: TestBaseline) -> bool:
    """Return whether nothing but sessions was added to a test."""
    same = (base.accepted, base.configuration) == (now.accepted, now.configuration)
    return (
        same
        and base.metrics.keys() == now.metrics.keys()
        and all(_longer(stored, now.metrics[name]) for name, stored in base.metrics.items())
    )


def _longer(base: MetricBaseline, now: MetricBaseline) -> bool:
    same = (base.metric, base.since) == (now.metric, now.since)
    return same and now.sessions[: len(base.sessions)] == base.sessions


def _joined(base: TestBaseline, ours: TestBaseline, theirs: TestBaseline) -> TestBaseline:
    metrics = {
        name: replace(
            stored, sessions=_union(stored, ours.metrics[name].sessions, theirs.metrics[name])
        )
        for name, stored in base.metrics.items()
    }
    return replace(base, metrics=metrics, ops=max(ours.ops or "", theirs.ops or "") or None)


def _union(
    base: MetricBaseline, ours: tuple[Session, ...], theirs: MetricBaseline
) -> tuple[Session, ...]:
    """Return the sessions of both sides, as many as there is room for.

    What both added first is the same, say by a cherry-pick. Nothing tells which of the others is
    newer; sorted, both directions give the same file.
    """
    known = len(base.sessions)
    first, second = sorted([ours[known:], theirs.sessions[known:]])
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second)))  # noqa: B905 (the common part)
    added = (*first, *second[shared:])
    return (*base.sessions, *added[: max(MAX_SESSIONS - len(base.current), 0)])


def _decided(
    name: str, ours: TestBaseline | None, theirs: TestBaseline | None, take: Take | None
) -> Conflict:
    taken = take or Take.OURS
    if taken is Take.NEWEST:
        newer = theirs is not None and (
            ours is None or _moment(theirs.accepted) > _moment(ours.accepted)
        )
        taken = Take.THEIRS if newer else Take.OURS
    return Conflict(name, ours, theirs, taken, settled=take is not None)


def _moment(accepted: Accepted) -> tuple[str, ...]:
    """Order accepts by their time, and those of one second in any way that both sides share."""
    rest = (accepted.commit, accepted.reason, accepted.ttnn, sorted(accepted.environment.items()))
    return accepted.at, repr(rest)
