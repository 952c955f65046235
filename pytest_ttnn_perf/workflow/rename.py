"""Baselines follow their tests: one that was renamed, a file or folder that moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.baselines.moves import check_free, move
from pytest_ttnn_perf.baselines.ops_file import read_ops_file
from pytest_ttnn_perf.baselines.paths import key_folder
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.model.coverage import lies_in
from pytest_ttnn_perf.model.edit import Edits, TestEdit
from pytest_ttnn_perf.workflow.changing import Changing, shown_then_done
from pytest_ttnn_perf.workflow.edits import file_edits, metric_edits
from pytest_ttnn_perf.workflow.orphans import stored_tests
from pytest_ttnn_perf.workflow.selection import near

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.baseline import TestBaseline
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.result import Result

_Moves = dict["Hardware", dict[str, str]]


def rename_baselines(before: str, after: str, root: Path, changing: Changing) -> Result:
    """Show which baselines get which name, on all keys, and give it to them.

    Raises:
        UsageError: nothing has the old name, or something has the new one.
        InputError: a baseline file or an op table is malformed.
    """
    store = BaselineStore(root)
    moves = _moves(store, before, after)
    tests, changes = [], []
    for hardware, names in moves.items():
        then: dict[str, TestBaseline | None] = {}
        for old, new in names.items():
            check_free(store, hardware, old, new)
            stored = store.find(hardware, old)
            assert stored is not None, f"{old} was found, and is not there"
            what = dict.fromkeys(stored.metrics, "renamed")
            note = _table_note(root, hardware, stored)
            edit = metric_edits(stored, stored, what)
            tests.append(TestEdit(hardware.key, old, edit, renamed_to=new, note=note))
            then |= {old: None, new: _with_table(root, hardware, stored)}
        changes.append((hardware, then))
    edits = Edits(tuple(tests), file_edits(store, changes, here=changing.here))

    def write() -> tuple[str, ...]:
        for hardware, names in moves.items():
            move(root, hardware, names)
        return ()

    return shown_then_done(edits, changing, write)


def _moves(store: BaselineStore, before: str, after: str) -> _Moves:
    _check_alike(before, after)
    place, goal = before.removeprefix("./").rstrip("/"), after.removeprefix("./").rstrip("/")
    place, goal = place.removesuffix("::"), goal.removesuffix("::")
    names: set[str] = set()
    moves: _Moves = {}
    for test, file in stored_tests(store.all_files()):
        names.add(test)
        if lies_in(test, place):
            moves.setdefault(file.content.hardware, {})[test] = goal + test[len(place) :]
    if not moves:
        close = near(before, names)
        said = f"{before} has no baseline in {store.root}"
        raise UsageError(f"{said}; near to it: {', '.join(close)}" if close else said)
    return moves


def _check_alike(before: str, after: str) -> None:
    """Refuse to make a folder of a file, or a file of a test."""
    if not before.strip("./") or not after.strip("./") or before == after:
        message = f"expected two names that differ, found {before!r} and {after!r}"
        raise UsageError(message)
    first, second = _kind(before), _kind(after)
    if first != second:
        message = f"{before} is a {first} and {after} a {second}: give two of one kind"
        raise UsageError(message)


def _kind(name: str) -> str:
    if name.endswith("/"):
        return "folder"
    place = name.removesuffix("::")
    if "::" in place:
        return "test"
    # Of baselines that other programs record, a file may have any name.
    return "file" if name.endswith("::") or "." in place.rpartition("/")[2] else "folder or file"


def _with_table(root: Path, hardware: Hardware, test: TestBaseline) -> TestBaseline:
    file = key_folder(root, hardware) / (test.ops or "")
    if test.ops is None or not file.exists():
        return replace(test, ops=None)
    return replace(test, op_table=read_ops_file(file))


def _table_note(root: Path, hardware: Hardware, test: TestBaseline) -> str | None:
    if test.ops is None or (key_folder(root, hardware) / test.ops).exists():
        return None
    return f"its op table {test.ops} is missing; it goes on without one"
