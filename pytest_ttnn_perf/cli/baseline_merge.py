"""``ttnn-perf baseline merge`` and ``install-merge-driver``: two branches, one baseline file."""

from __future__ import annotations

import os
import shlex
import sys
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import (
    MAX_SESSIONS,
    MetricBaseline,
    TestBaseline,
    decode_file,
    encode_text,
    key_folder,
    ops_path,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import no_file_at, parse_json, read_text, write_text
from pytest_ttnn_perf.core.settings import Take, project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.gate.transaction import change_files
from pytest_ttnn_perf.machine.git import posix, set_setting, setting, staged_version, top_level
from pytest_ttnn_perf.report.sentences import command_line, place_of
from pytest_ttnn_perf.report.tables import Listing, Result, format_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.core.baseline import Accepted, BaselineFile, Session
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.gate.store import Change


# Changes to stored baselines: giving them another name, and merging two branches.


class Conflict(Struct, frozen=True):
    """A test that both sides changed; None is a side that removed it. ``taken`` is whose was kept.

    ``settled``: the user had said whose to take.
    """

    test: str
    ours: TestBaseline | None
    theirs: TestBaseline | None
    taken: Take
    settled: bool = False


class Merged(Struct, frozen=True):
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


#: Takes the folder that git works in out of the path: a module of the project's is none of ours.
_MAIN: Final = (
    "import sys; sys.path = [folder for folder in sys.path if folder]; "
    "from pytest_ttnn_perf.cli.main import main; sys.exit(main())"
)
_ATTRIBUTE: Final = "merge=ttnn-perf"
_HEADINGS: Final = ("where", "what", "state")


def _settings() -> tuple[tuple[str, str], ...]:
    """Return what git is told: the driver as this Python runs it, whatever is on the PATH then."""
    command = shlex.join([sys.executable, "-c", _MAIN]).replace("%", "%%")
    return (
        ("merge.ttnn-perf.name", "baselines of ttnn-perf, by test and session"),
        ("merge.ttnn-perf.driver", f"{command} baseline merge %O %A %B --path %P"),
    )


def run_install(options: argparse.Namespace) -> Result:
    """Show the settings and attributes that git gets for the baselines, and write them.

    What is set already stays; doing it again changes nothing.

    Raises:
        UsageError: there is no git repository around the baselines.
        InputError: its attributes cannot be read.
    """
    baselines = options.baselines or project_settings().baselines
    root = top_level(baselines.absolute())
    if root is None:
        message = (
            f"{baselines} is in no git repository, or git is not installed: git init makes one"
        )
        raise UsageError(message)
    attributes = root / ".gitattributes"
    _refuse_elsewhere(attributes, root)
    before = read_text(attributes) if attributes.exists() else ""
    present = set(before.splitlines())
    wanted = _attribute_lines(baselines.absolute(), root)
    lines = [line for line in wanted if line not in present]
    every = _settings()
    settings = [(name, value) for name, value in every if setting(root, name) != value]
    state = {True: "new", False: "is set"}
    rows = [("git config", f"{n} = {v}", state[(n, v) in settings]) for n, v in every]
    rows += [(".gitattributes", line, state[line in lines]) for line in wanted]
    text = _listing(rows, dry_run=options.dry_run).text(options.format)
    if options.dry_run or not (lines or settings):
        return Result(text)

    def then() -> Result:
        for name, value in settings:
            if not set_setting(root, name, value):
                raise WriteError(root / ".git" / "config", OSError("git config refused"))
        if lines:
            ended = before if not before or before.endswith("\n") else f"{before}\n"
            write_text(attributes, ended + "".join(f"{line}\n" for line in lines))
        next_step = "commit .gitattributes; git config applies to this clone only\n"
        return Result(next_step if options.format == "table" else "")

    return Result(text, then=then)


def _attribute_lines(baselines: Path, root: Path) -> tuple[str, ...]:
    folder = posix(baselines, root)
    patterns = (f"{folder}/**/*.json", f"{folder}/**/*.ops/*.csv")
    return tuple(f"{_quote(pattern)} {_ATTRIBUTE}" for pattern in patterns)


def _quote(pattern: str) -> str:
    """Return a pattern as git's attributes have it: a space would end it."""
    if not set(pattern) & set(' "\\'):
        return pattern
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listing(rows: list[tuple[str, str, str]], *, dry_run: bool) -> Listing:
    would = "would set" if dry_run else "set"
    lines = [
        f"{where}: {would if state == 'new' else 'already set'}: {what}"
        for where, what, state in rows
    ]
    document = {
        "dry_run": dry_run,
        "settings": [dict(zip(_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing(tuple(lines), document, _HEADINGS, tuple(rows))


_COLUMNS: Final = (
    "test", "metric", "unit", "ours", "ours_sessions", "theirs", "theirs_sessions", "taken",
)  # fmt: skip


class Side(Struct, frozen=True):
    """One side's baseline of a test: who accepted it, and centre and sessions of each metric."""

    accepted: Accepted
    values: Mapping[str, tuple[Metric, float, int]]


def conflict_listing(path: str, merged: Merged) -> Listing:
    """Lay out what could not be joined, with both sides' numbers, reasons and dates."""
    sides = [
        (conflict, _side(conflict.ours), _side(conflict.theirs)) for conflict in merged.conflicts
    ]
    lines = [f"joined the sessions of both sides: {test}" for test in merged.joined]
    for conflict, ours, theirs in sides:
        head = "resolved" if conflict.settled else "conflict"
        how = "was changed on one side and removed on the other"
        if ours and theirs:
            how = "was accepted on both sides"
        lines.append(f"{head} in {path}: {conflict.test} {how}; {conflict.taken.value} is in it")
        lines += [
            f"  {name}: ours {_value(ours, name)}, theirs {_value(theirs, name)}"
            for name in _names(ours, theirs)
        ]
        lines += [f"  ours: {_provenance(ours)}", f"  theirs: {_provenance(theirs)}"]
    if merged.unsettled:
        lines += _commands(path)
    document = {
        "path": path,
        "joined": list(merged.joined),
        "conflicts": [
            {
                "test": conflict.test,
                "taken": conflict.taken.value,
                "settled": conflict.settled,
                "ours": _side_document(ours),
                "theirs": _side_document(theirs),
            }
            for conflict, ours, theirs in sides
        ],
    }
    rows = tuple(row for conflict in sides for row in _rows(*conflict))
    return Listing(tuple(lines), document, _COLUMNS, rows)


def _commands(path: str) -> Iterator[str]:
    add = command_line("git", "add", place_of(path))
    theirs = command_line(
        "ttnn-perf", "baseline", "merge", "--path", place_of(path), "--take", "theirs"
    )
    yield f"  take theirs with: {theirs} && {add}"
    yield f"  keep ours with: {add}"


def _names(ours: Side | None, theirs: Side | None) -> list[str]:
    return sorted({*(ours.values if ours else ()), *(theirs.values if theirs else ())})


def _value(side: Side | None, name: str) -> str:
    if side is None or name not in side.values:
        return "none"
    metric, centre, sessions = side.values[name]
    return f"{format_value(metric, centre)} ({counted(sessions, 'session')})"


def _provenance(side: Side | None) -> str:
    if side is None:
        return "removed"
    accepted = side.accepted
    commit = f" at {accepted.commit}" if accepted.commit else ""
    return f"accepted {accepted.at}{commit}, {accepted.reason or 'no reason given'}"


def _side_document(side: Side | None) -> dict[str, object] | None:
    if side is None:
        return None
    accepted = side.accepted
    return {
        "at": accepted.at,
        "commit": accepted.commit,
        "reason": accepted.reason,
        "metrics": {
            name: {"centre": centre, "unit": metric.unit, "sessions": sessions}
            for name, (metric, centre, sessions) in side.values.items()
        },
    }


def _rows(
    conflict: Conflict, ours: Side | None, theirs: Side | None
) -> Iterator[tuple[object, ...]]:
    for name in _names(ours, theirs):
        metric, mine, my_sessions = _cells(ours, name)
        other, its, its_sessions = _cells(theirs, name)
        known = metric or other
        unit = known.unit if known else ""
        numbers = (mine, my_sessions, its, its_sessions)
        yield (conflict.test, name, unit, *numbers, conflict.taken.value)


def _cells(side: Side | None, name: str) -> tuple[Metric | None, float | None, int | None]:
    if side is None or name not in side.values:
        return None, None, None
    return side.values[name]


class _Versions(Struct, frozen=True):
    """The texts of the three versions, and the file that the result goes to."""

    base: str
    ours: str
    theirs: str
    names: tuple[Path, Path, Path]
    goal: Path


def run_merge(options: argparse.Namespace) -> Result:
    """Merge three versions of a baseline file, or of an op table beside one.

    Without files, the versions are those of ``--path``, which git has in conflict.

    Raises:
        UsageError: not three files, or git has no such file in conflict.
        InputError: a version is not what it should be; nothing was written.
        WriteError: the result cannot be written.
    """
    files, path, shape = options.files, options.path, options.format
    if len(files) not in {0, 3} or (not files and path is None):
        found = f"found {len(files)} files" + ("" if path else " and no --path")
        message = f"expected BASE OURS THEIRS, or --path alone for a file in conflict; {found}"
        raise UsageError(message)
    take = Take(options.take) if options.take else None
    versions = _given_versions(*files) if files else _staged_versions(path)
    name = str(path or versions.goal)
    if Path(name).suffix == ".csv":
        return _merge_tables(versions, name, take, shape)
    base, ours, theirs = (
        parse_json(text, decode_file, file=file) if text.strip() else None
        for text, file in zip(
            (versions.base, versions.ours, versions.theirs), versions.names, strict=True
        )
    )
    if ours is None or theirs is None:
        raise InputError(versions.names[1 if ours is None else 2], "the file is empty")
    if ours.hardware != theirs.hardware:
        keys = f"{ours.hardware.key} and {theirs.hardware.key}"
        raise InputError(versions.names[1], f"the two sides are of different hardware: {keys}")
    merged = merge_files(base, ours, theirs, take=take)
    text = encode_text(merged.file)
    if files:
        write_text(versions.goal, text)
    else:
        root = _root_of(path, merged.file.hardware)
        with BaselineStore(root).locked():
            change_files(root, {path: text, **dict(_tables(merged, path))})
    listing = conflict_listing(name, merged)
    return Result(listing.text(shape), failed=bool(merged.unsettled))


def _given_versions(base: Path, ours: Path, theirs: Path) -> _Versions:
    # Of a file that both sides added, git's base is empty, or not there.
    before = read_text(base) if os.path.lexists(base) else ""
    return _Versions(before, read_text(ours), read_text(theirs), (base, ours, theirs), ours)


def _staged_versions(file: Path) -> _Versions:
    base_text, ours_text, theirs_text = (staged_version(file, stage) for stage in (1, 2, 3))
    if ours_text is None or theirs_text is None:
        message = f"git does not have two versions of {file}: expected a file in conflict"
        raise UsageError(f"{message}; git status lists them")
    _refuse_elsewhere(file, file.parent)
    return _Versions(base_text or "", ours_text, theirs_text, (file, file, file), file)


def _merge_tables(versions: _Versions, name: str, take: Take | None, shape: str) -> Result:
    """Merge two op tables: only one can be the one of the run that was accepted."""
    changed = {"ours": versions.ours != versions.base, "theirs": versions.theirs != versions.base}
    conflict = all(changed.values()) and versions.ours != versions.theirs
    theirs = take is Take.THEIRS if conflict else changed["theirs"]
    if conflict and take is Take.NEWEST:
        message = f"{name}: an op table has no date; take the side whose baseline was taken: "
        raise UsageError(message + "--take ours or --take theirs")
    write_text(versions.goal, versions.theirs if theirs else versions.ours)
    unsettled = conflict and take is None
    taken = Take.THEIRS.value if theirs else Take.OURS.value
    lines: list[str] = []
    if conflict:
        head = "conflict" if unsettled else "resolved"
        lines.append(f"{head} in {name}: both sides have another op table; {taken} is in it")
        if unsettled:
            lines.append("  it belongs to the baseline that is taken, which this file cannot tell")
            lines += _commands(name)
    document = {"path": name, "joined": [], "conflicts": [{"taken": taken}] if conflict else []}
    return Result(Listing(tuple(lines), document, _COLUMNS, ()).text(shape), failed=unsettled)


def _root_of(path: Path, hardware: Hardware) -> Path:
    """Return the folder of baselines that a file is in: that with the folder of its key."""
    key = key_folder(Path(), hardware).name
    return next((folder.parent for folder in path.parents if folder.name == key), path.parent)


def _tables(merged: Merged, goal: Path) -> Iterator[tuple[Path, str]]:
    """Yield the op tables that belong to the side that was taken, where git has both.

    Raises:
        InputError: a table would be written through a link that leads elsewhere.
    """
    for conflict in merged.conflicts:
        taken = conflict.ours if conflict.taken is Take.OURS else conflict.theirs
        if taken is None or taken.ops is None:
            continue
        place = ops_path(f"{goal.name}::{conflict.test}").name
        table = goal.with_suffix(".ops") / place
        text = staged_version(table, 2 if conflict.taken is Take.OURS else 3)
        if text is not None:
            _refuse_elsewhere(table, goal.parent)
            yield table, text


def _refuse_elsewhere(file: Path, folder: Path) -> None:
    """Refuse to write through a link that leads out of a folder."""
    found = no_file_at(file, within=folder)
    if found is not None:
        raise InputError(file, f"expected a file in {folder}, found {found}")


def _side(test: TestBaseline | None) -> Side | None:
    if test is None:
        return None
    values = {name: (m.metric, centre_of(m), len(m.current)) for name, m in test.metrics.items()}
    return Side(test.accepted, values)
