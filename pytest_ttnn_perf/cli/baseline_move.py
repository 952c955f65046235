"""``ttnn-perf baseline forget``, ``prune`` and ``rename``: what goes, or has another name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.baselines.changes import check_free, move
from pytest_ttnn_perf.baselines.store import BaselineStore, read_ops_file
from pytest_ttnn_perf.cli.baseline_edits import (
    Edits,
    TestEdit,
    edited_settings,
    file_edits,
    metric_edits,
    near,
    repeated_options,
    select_tests,
    show_then_write,
)
from pytest_ttnn_perf.records.baseline import key_folder, split_test_id
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.observation import Coverage, Run, function_of, lies_in
from pytest_ttnn_perf.records.systems import typed_hardware
from pytest_ttnn_perf.report.orphans import renaming_texts
from pytest_ttnn_perf.run.health import (
    collect,
    describe_orphans,
    hardware_of,
    orphans_in,
    stored_tests,
)
from pytest_ttnn_perf.run.judge import judge_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.baselines.store import Change, StoredFile
    from pytest_ttnn_perf.records.baseline import Orphan, TestBaseline
    from pytest_ttnn_perf.report.numbers import Result


def run_prune(options: argparse.Namespace) -> Result:
    """Show the baselines whose test is gone, and remove them.

    Raises:
        UsageError: it is not known which tests there are.
        InputError: the record or a baseline is unreadable.
    """
    if (options.record is None) is not options.collect:
        message = "say where the list of tests comes from: ttnn-perf baseline prune RUN.json, "
        raise UsageError(
            message + "the record of a full run, or ttnn-perf baseline prune --collect"
        )
    settings, key = edited_settings(options), options.key
    store = BaselineStore(settings.baselines)
    files = _files(store, key)
    if options.record is None:
        run = Run(None, {}, coverage=collect(settings, Path.cwd()))
    else:
        run = judge_run(_full_run(options.record, full=options.full), store, settings)
    orphans = list(orphans_in(run, files, used=hardware_of(run)))
    chosen = [orphan for orphan in orphans if key in {None, orphan.hardware.key}]
    found = replace(describe_orphans(chosen, run, store), options=repeated_options(options))
    renamed = {orphan for renaming in found.renamings for orphan in renaming.orphans}
    gone = [orphan for orphan in found.orphans if orphan not in renamed]
    remarks = [f"kept: {text}" for text in renaming_texts(found)]
    remarks += _kept(run, files, key=key)
    edits = _edits(gone, store, remarks=remarks)

    def write() -> tuple[str, ...]:
        changes: dict[Hardware, dict[str, Change]] = {}
        for orphan in gone:
            changes.setdefault(orphan.hardware, {})[orphan.test] = lambda _: None
        store.amend_keys(changes)
        return ()

    return show_then_write(edits, options, write)


def _files(store: BaselineStore, key: str | None) -> list[StoredFile]:
    """Return all files; refuse a key that none of them has."""
    files = list(store.all_files())
    keys = sorted({file.content.hardware.key for file in files})
    if key is not None and key not in keys:
        close = near(key, keys) or tuple(keys)
        message = f"there are no baselines of {key}, only of: {', '.join(close)}"
        raise UsageError(message)
    return files


def run_forget(options: argparse.Namespace) -> Result:
    """Show the baselines of tests that are to be recorded anew, and remove them.

    Raises:
        UsageError: no test is named, one has no such baseline, or has it on several keys.
        InputError: a baseline is unreadable.
    """
    if not options.tests and not options.ids:
        message = "name the tests to forget: ttnn-perf baseline forget TEST ..."
        raise UsageError(message)
    store, metric = BaselineStore(edited_settings(options).baselines), options.metric
    keys: dict[str, list[Hardware]] = {}
    for test, file in stored_tests(_files(store, options.key)):
        stored = file.content.tests[split_test_id(test)[1]]
        hardware = file.content.hardware
        if options.key in {None, hardware.key} and metric in {None, *stored.metrics}:
            keys.setdefault(test, []).append(hardware)
    where = f"{store.root}{f' with the metric {metric}' if metric else ''}"
    edits: list[TestEdit] = []
    changes: dict[Hardware, dict[str, Change]] = {}
    after: dict[Hardware, dict[str, TestBaseline | None]] = {}
    for test in select_tests(keys, options.tests, options.ids, where=where):
        if len(keys[test]) > 1:
            several = ", ".join(sorted(hardware.key for hardware in keys[test]))
            raise UsageError(f"{test} has baselines on {several}: say which with --key KEY")
        (hardware,) = keys[test]
        before = store.find(hardware, test)
        left = _without(before, metric)
        gone = (before.metrics if before else {}).keys() - (left.metrics if left else {}).keys()
        what = dict.fromkeys(gone, "removed")
        edits.append(TestEdit(hardware.key, test, metric_edits(before, left, what)))
        after.setdefault(hardware, {})[test] = left
        changes.setdefault(hardware, {})[test] = partial(_without, metric=metric)

    def write() -> tuple[str, ...]:
        store.amend_keys(changes)
        return ()

    files = file_edits(store, after.items(), cwd=Path.cwd())
    return show_then_write(Edits(tuple(edits), files), options, write)


def _without(test: TestBaseline | None, metric: str | None) -> TestBaseline | None:
    """Return what is left of a baseline without one metric, or without all of them."""
    if test is None or metric is None:
        return None
    left = {name: stored for name, stored in test.metrics.items() if name != metric}
    return replace(test, metrics=left) if left else None


def _full_run(record: Path, *, full: bool) -> Run:
    run = read_run(record)
    if run.coverage is not None:
        return run
    if not full:
        message = f"{record} does not say that it has all tests: it is of a selection (-k, test ids"
        hint = "if it has all of them, say so with --full"
        raise UsageError(f"{message}, --lf, -n), or another program wrote it; {hint}")
    if not run.complete:
        message = f"{record} was cut short: it cannot have all tests; give that of a whole run"
        raise UsageError(message)
    return replace(run, coverage=Coverage(("",)))


def _kept(run: Run, files: Sequence[StoredFile], *, key: str | None) -> Iterator[str]:
    """Name the baselines that are kept because the run does not show whether they are in use."""
    assert run.coverage is not None, "without it, nothing is known of any"
    existing, used = {*run.tests, *run.coverage.others}, hardware_of(run)
    functions = run.coverage.functions(run.tests)
    stored = [(t, f) for t, f in stored_tests(files) if key in {None, f.content.hardware.key}]
    foreign = [
        test
        for test, file in stored
        if file.content.hardware not in used
        and test not in existing
        and run.coverage.covers(test)
        and function_of(test) in functions
    ]
    if foreign:
        count = counted(len(foreign), "baseline")
        yield f"kept {count} with parameters that other hardware may have: {foreign[0]}"
        yield "  a record of a full run on that hardware shows whether they are gone"
    for place in run.coverage.others:
        if "::" not in place and any(lies_in(test, place) for test, _ in stored):
            yield f"kept what is stored of {place}: it could not be collected, or was skipped"


def _edits(gone: list[Orphan], store: BaselineStore, *, remarks: list[str]) -> Edits:
    tests = []
    after: dict[Hardware, dict[str, TestBaseline | None]] = {}
    for orphan in gone:
        stored = store.find(orphan.hardware, orphan.test)
        if stored is not None:
            metrics = metric_edits(stored, None, dict.fromkeys(stored.metrics, "removed"))
            note = None
            if orphan.looks_like:
                note = f"looks like {orphan.looks_like}, which has a baseline of its own"
            tests.append(TestEdit(orphan.hardware.key, orphan.test, metrics, note=note))
            after.setdefault(orphan.hardware, {})[orphan.test] = None
    files = file_edits(store, after.items(), cwd=Path.cwd())
    return Edits(tuple(tests), files, remarks=tuple(remarks))


_Moves = dict[Hardware, dict[str, str]]


def run_rename(options: argparse.Namespace) -> Result:
    """Show which baselines get which name, on all keys, and give it to them.

    Raises:
        UsageError: nothing has the old name, or something has the new one.
        InputError: a baseline file or an op table is malformed.
    """
    root = edited_settings(options).baselines
    store = BaselineStore(root)
    to = typed_hardware(options.after) if options.keys else None
    names_of = _moves_of_key if options.keys else _moves
    moves = names_of(store, options.before, options.after)
    edits = _renaming_edits(store, moves, to)

    def write() -> tuple[str, ...]:
        move(root, moves, to=to)
        return ()

    return show_then_write(edits, options, write)


def _renaming_edits(store: BaselineStore, moves: _Moves, to: Hardware | None) -> Edits:
    tests = []
    changes: dict[Hardware, dict[str, TestBaseline | None]] = {}
    for hardware, names in moves.items():
        goal = to or hardware
        for old, new in names.items():
            check_free(store, hardware, old, new, to=to)
            stored = store.find(hardware, old)
            assert stored is not None, f"{old} was found, and is not there"
            word = "renamed" if to is None else f"moved to {to.key}"
            what = dict.fromkeys(stored.metrics, word)
            table = key_folder(store.root, hardware) / (stored.ops or "")
            note, moved = None, replace(stored, ops=None)
            if stored.ops is not None and table.exists():
                moved = replace(stored, op_table=read_ops_file(table))
            elif stored.ops is not None:
                note = f"its op table {stored.ops} is missing; it is renamed without one"
            edit = metric_edits(stored, stored, what)
            name = new if to is None else None
            tests.append(TestEdit(hardware.key, old, edit, renamed_to=name, note=note))
            changes.setdefault(hardware, {})[old] = None
            changes.setdefault(goal, {})[new] = moved
    return Edits(tuple(tests), file_edits(store, changes.items(), cwd=Path.cwd()))


def _moves_of_key(store: BaselineStore, before: str, after: str) -> _Moves:
    """Return the tests of a key, which keep their names."""
    files = list(store.all_files())
    found = {file.content.hardware for file in files if file.content.hardware.key == before}
    if not found or before == after:
        keys = ", ".join(sorted({file.content.hardware.key for file in files}))
        message = f"expected another key than {after}, and one that there is: {keys}; found "
        raise UsageError(message + before)
    (hardware,) = found
    own = (file for file in files if file.content.hardware == hardware)
    return {hardware: {test: test for test, _ in stored_tests(own)}}


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
        message = f"{before} has no baseline in {store.root}"
        raise UsageError(f"{message}; near to it: {', '.join(close)}" if close else message)
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
