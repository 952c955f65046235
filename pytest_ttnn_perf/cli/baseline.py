"""The words of ``ttnn-perf baseline`` and its actions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.cli.baseline_accept import run_accept, run_refresh
from pytest_ttnn_perf.cli.baseline_edits import (
    Edits,
    TestEdit,
    add_change,
    edited_settings,
    file_edits,
    metric_edits,
    near,
    repeated_options,
    select_tests,
    show_then_write,
)
from pytest_ttnn_perf.cli.baseline_merge import check_free, move, run_install, run_merge
from pytest_ttnn_perf.cli.common import add_baselines, add_format, number_within
from pytest_ttnn_perf.core.baseline import (
    Accepted,
    MetricBaseline,
    decode_file,
    key_folder,
    split_test_id,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import parse_json
from pytest_ttnn_perf.core.hardware import Hardware, typed_hardware
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.observation import Coverage, Run, function_of, lies_in
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.health import (
    collect,
    describe_orphans,
    hardware_of,
    orphans_in,
    stored_tests,
)
from pytest_ttnn_perf.gate.judging import judge_run
from pytest_ttnn_perf.gate.ratios import RUNS_FOR_SPREAD, centre_of
from pytest_ttnn_perf.gate.store import BaselineStore, read_ops_file
from pytest_ttnn_perf.machine.git import committed_version, contents, history, top_level
from pytest_ttnn_perf.report.sentences import runs_seen
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    METRIC,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_value,
    id_column,
)
from pytest_ttnn_perf.report.terminal import renaming_texts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.core.baseline import BaselineFile, Orphan, TestBaseline
    from pytest_ttnn_perf.gate.store import Change, StoredFile
    from pytest_ttnn_perf.machine.git import Committed
    from pytest_ttnn_perf.report.tables import Block

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 (has no other name)


# ``ttnn-perf baseline list``: what is stored, and who accepted it and why.


class _Stored(Struct, frozen=True):
    """A stored metric of a test."""

    key: str
    test: str
    metric: str
    baseline: MetricBaseline
    accepted: Accepted

    @property
    def centre(self) -> float:
        return centre_of(self.baseline)

    @property
    def sessions_text(self) -> str:
        sessions, runs = len(self.baseline.current), self.baseline.runs
        provisional = self.baseline.metric.compared_by_ratio and runs < RUNS_FOR_SPREAD
        return f"{sessions} ({runs_seen(runs)})" if provisional else str(sessions)


_STORED_COLUMNS: Final[Columns[_Stored]] = Columns(
    Column("key", lambda s: s.key, "key", once=True, title=lambda s: s.key),
    id_column(lambda s: s.test),
    Column("metric", lambda s: s.metric, "metric", fit=METRIC),
    Column("centre", lambda s: s.centre, "baseline",
           lambda s: format_value(s.baseline.metric, s.centre), right=True),
    Column("unit", lambda s: s.baseline.metric.unit),
    Column("sessions", lambda s: len(s.baseline.sessions), "sessions", lambda s: s.sessions_text,
           right=True, fit=DROPPED[2], short=lambda s: str(len(s.baseline.current))),
    Column("runs", lambda s: s.baseline.runs),
    Column("since", lambda s: s.baseline.since),
    Column("current", lambda s: len(s.baseline.current)),
    Column("accepted", lambda s: s.accepted.at, "accepted", lambda s: s.accepted.at or "-",
           once=True, fit=DROPPED[3], short=lambda s: (s.accepted.at or "-")[:10]),
    Column("commit", lambda s: s.accepted.commit, "commit", lambda s: s.accepted.commit or "-",
           once=True, fit=DROPPED[1]),
    Column("reason", lambda s: s.accepted.reason, "reason", lambda s: s.accepted.reason or "-",
           once=True, fit=BELOW),
)  # fmt: skip


def run_list(options: argparse.Namespace) -> Result:
    """Return every stored metric, or with ``--log`` who accepted it.

    Raises:
        UsageError: tests are named without ``--log``, or there are none of these.
        InputError: the folder is missing, or a file in it is malformed.
    """
    root = options.baselines or project_settings().baselines
    if options.log:
        return Result(list_acceptances(root, options.tests, options.ids).text(options.format))
    named = [*options.tests, *options.ids]
    if named:
        message = f"tests are named with --log: ttnn-perf baseline list --log {named[0]}"
        raise UsageError(message)
    found = [stored for file in BaselineStore(root).all_files() for stored in _stored_in(file)]
    tests = len({(stored.key, stored.test) for stored in found})
    count = f"{counted(len(found), 'metric')} of {counted(tests, 'test')}"
    lines: tuple[Block, ...] = (*_STORED_COLUMNS.table(found), count)
    document = {"baselines": _STORED_COLUMNS.objects(found)}
    listing = Listing(lines, document, _STORED_COLUMNS.names, _STORED_COLUMNS.rows(found))
    return Result(listing.text(options.format))


def _stored_in(file: StoredFile) -> Iterator[_Stored]:
    key, place = file.content.hardware.key, file.test_file or file.path.stem
    for name, test in sorted(file.content.tests.items()):
        nodeid = f"{place}::{name}" if name else place
        for metric, baseline in sorted(test.metrics.items()):
            yield _Stored(key, nodeid, metric, baseline, test.accepted)


class _Version(Struct, frozen=True):
    """A baseline file as a commit left it; None is the file as it is now, in no commit."""

    content: BaselineFile
    committed: Committed | None


def list_acceptances(root: Path, tests: Sequence[str], ids: Sequence[str] = ()) -> Listing:
    """List every accept of every test, newest first."""
    files = list(BaselineStore(root).all_files())
    names = dict.fromkeys(test for test, _ in stored_tests(files))
    wanted = frozenset(select_tests(names, tests, ids, where=str(root)))
    in_git = top_level(root.absolute()) is not None
    found: list[_Acceptance] = []
    for file in files:
        own = [test for test, _ in stored_tests([file]) if test in wanted]
        if own:
            versions = _versions(file) if in_git else [_Version(file.content, None)]
            found += [
                acceptance for test in own for acceptance in _acceptances(file, test, versions)
            ]
    count = counted(len(found), "accept")
    count += "" if in_git else "; no git here: only the last of each test is known"
    lines: tuple[Block, ...] = (*_ACCEPTANCE_COLUMNS.table(found), count)
    document = {"accepts": _ACCEPTANCE_COLUMNS.objects(found)}
    return Listing(lines, document, _ACCEPTANCE_COLUMNS.names, _ACCEPTANCE_COLUMNS.rows(found))


def _versions(file: StoredFile) -> list[_Version]:
    """Return a file now and as each commit left it, newest first; what cannot be read is left out.

    A version with conflict markers, or of a format that is not known any more, tells nothing.
    """
    commits = history(file.path)
    found = [_Version(file.content, None)]
    for committed, text in zip(commits, contents(file.path, commits), strict=True):
        if text is None:
            continue
        try:
            found.append(_Version(parse_json(text, decode_file, file=file.path), committed))
        except InputError:
            continue
    return found


def _acceptances(
    file: StoredFile, test: str, versions: Sequence[_Version]
) -> Iterator[_Acceptance]:
    """Yield a test as it was accepted, with the commit that brought it: the oldest that has it.

    What is stored now comes first, also where a merge has brought it back.
    """
    brought: dict[str, tuple[TestBaseline, Committed | None]] = {}
    for version in versions:
        baseline = version.content.tests.get(test.partition("::")[2])
        if baseline is not None:
            brought[repr(baseline.accepted)] = (baseline, version.committed)
    for baseline, committed in brought.values():
        yield _Acceptance(file.content.hardware.key, test, baseline, committed)


class _Acceptance(Struct, frozen=True):
    """A baseline as it was accepted; ``committed`` is None where no commit has it."""

    key: str
    test: str
    baseline: TestBaseline
    committed: Committed | None

    @property
    def values(self) -> str:
        return "; ".join(
            f"{name} {format_value(stored.metric, centre_of(stored))}"
            for name, stored in sorted(self.baseline.metrics.items())
        )

    @property
    def day(self) -> str | None:
        return self.committed.date[:10] if self.committed else None


def _known(text: str | None) -> str:
    return "-" if text is None else text


_ACCEPTANCE_COLUMNS: Final[Columns[_Acceptance]] = Columns(
    Column("key", lambda a: a.key, "key", once=True, title=lambda a: a.key),
    id_column(lambda a: a.test),
    Column("accepted", lambda a: a.baseline.accepted.at, "accepted",
           short=lambda a: (a.baseline.accepted.at or "-")[:10]),
    Column("commit", lambda a: a.baseline.accepted.commit, "commit",
           lambda a: _known(a.baseline.accepted.commit), fit=DROPPED[2]),
    Column("reason", lambda a: a.baseline.accepted.reason),
    Column("author", lambda a: a.committed and a.committed.author, "by",
           lambda a: _known(a.committed.author if a.committed else None), fit=Fit(least=10)),
    Column("committed", lambda a: a.committed and a.committed.date, "committed",
           lambda a: _known(a.day), fit=DROPPED[1]),
    Column("revision", lambda a: a.committed and a.committed.commit),
    Column("values", lambda a: a.values, "values", fit=BELOW),
    Column("", lambda a: _known(a.baseline.accepted.reason), "reason", fit=BELOW),
)  # fmt: skip


# ``ttnn-perf baseline check``: baselines are valid, and what got worse in them has a reason.

_REMEDY: Final = 'ttnn-perf baseline accept RUN.json --reason "why"'


class _Problem(Struct, frozen=True):
    """What is wrong with a file, or with a test in it."""

    file: str
    test: str
    problem: str

    def __str__(self) -> str:
        return f"{self.test or self.file}: {self.problem}"


_NAMES: Final = ("file", "test", "problem")


def run_check(options: argparse.Namespace) -> Result:
    """Return what is wrong with baseline files, all or some, compared with the last commit.

    Raises:
        UsageError: a file is not in the folder of baselines.
        InputError: there is no such folder.
    """
    root: Path = options.baselines or project_settings().baselines
    store = BaselineStore(root)
    if not root.is_dir():
        raise InputError(root, "expected a folder of baselines, found nothing")
    files = list(_asked(root, options.files))
    found = [problem for file in files for problem in _baseline_check_check(store, file)]
    known = "" if top_level(root.absolute()) else "; no git here: nothing to compare them with"
    count = f"{counted(len(files), 'file')} checked, {counted(len(found), 'problem')}{known}"
    remedy = (f"  accept it with: {_REMEDY}",) if any(problem.test for problem in found) else ()
    lines = (*map(str, found), *remedy, count)
    rows = tuple((problem.file, problem.test, problem.problem) for problem in found)
    document = {
        "files": len(files),
        "problems": [dict(zip(_NAMES, row, strict=True)) for row in rows],
    }
    return Result(Listing(lines, document, _NAMES, rows).text(options.format), failed=bool(found))


def _asked(root: Path, files: Sequence[Path]) -> Iterator[Path]:
    """Yield the files to look at; one that is gone is no baseline any more."""
    if not files:
        yield from sorted(file for file in root.rglob("*.json") if file.parent != root)
    for file in files:
        try:
            inside = file.absolute().relative_to(root.absolute())
        except ValueError:
            message = f"{file} is not in {root}, where baselines are; say --baselines DIR"
            raise UsageError(message) from None
        if inside.suffix == ".json" and (root / inside).exists():
            yield root / inside


def _baseline_check_check(store: BaselineStore, path: Path) -> Iterator[_Problem]:
    try:
        now = store.read(path)
        for name, test in now.content.tests.items():
            if test.ops is not None:
                store.ops_of(now.content.hardware, _id_of(now, name))
        before = _before(path)
    except InputError as error:
        yield _Problem(str(error.file), "", error.problem)
        return
    for name, test in sorted((before.tests if before else {}).items()):
        if name in now.content.tests:
            for problem in _without_reason(test, now.content.tests[name]):
                yield _Problem(str(path), _id_of(now, name), problem)


def _id_of(file: StoredFile, name: str) -> str:
    place = file.test_file or file.path.stem
    return f"{place}::{name}" if name else place


def _before(path: Path) -> BaselineFile | None:
    """Return a file as the last commit has it; None for one that is new, or was no baseline."""
    text = committed_version(path.absolute())
    if text is None:
        return None
    try:
        return parse_json(text, decode_file, file=path)
    except InputError:
        return None


def _without_reason(before: TestBaseline, now: TestBaseline) -> Iterator[str]:
    """Yield what got worse, or went, without somebody saying why."""
    if now.accepted.reason and now.accepted != before.accepted:
        return
    for name, stored in sorted(before.metrics.items()):
        changed = now.metrics.get(name)
        if changed is None:
            yield f"{name} is gone from the baseline, without a reason"
        elif not _only_adds(stored, changed) and _is_worse(stored, changed):
            metric = stored.metric
            then, later = (format_value(metric, centre_of(each)) for each in (stored, changed))
            yield f"{name} is worse than in the last commit, without a reason: {then} → {later}"


def _only_adds(before: MetricBaseline, now: MetricBaseline) -> bool:
    """Tell whether sessions were added to those that there were: nobody decided anything."""
    return before.since == now.since and set(before.sessions) <= set(now.sessions)


def _is_worse(before: MetricBaseline, now: MetricBaseline) -> bool:
    if before.metric.differs_from(now.metric) or before.metric.source is not now.metric.source:
        return True  # nobody can compare them
    then, later = centre_of(before), centre_of(now)
    if before.metric.better is Better.EQUAL:
        return then != later
    return later < then if before.metric.better is Better.HIGHER else later > then


# ``ttnn-perf baseline forget``, ``prune`` and ``rename``: what goes, or has another name.


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


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """Add ``ttnn-perf baseline``."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list all stored metrics, or who accepted them",
        description="List all stored metrics: value, sessions, when and why they were accepted.",
    )
    listing.add_argument(
        "--log",
        action="store_true",
        help="show who accepted what and why, from the files and from git",
    )
    listing.add_argument(
        "tests",
        metavar="TEST",
        nargs="*",
        help="with --log: only these tests, as an id, a file, or a pattern with * and ?",
    )
    add_baselines(listing)
    add_format(listing)
    listing.set_defaults(run=run_list)
    _check(actions)
    _accept(actions)
    _refresh(actions)
    _forget(actions)
    _prune(actions)
    _rename(actions)
    _merge_baselines(actions)


def _check(actions: Actions) -> None:
    check = actions.add_parser(
        "check",
        help="check that files are valid, and that what got worse has a reason; exit 1 if not",
        description="Look whether baseline files are valid, and whether what is worse than in the "
        "last commit was accepted with a reason. For hooks of git, and for reviews.",
    )
    check.add_argument(
        "files", metavar="FILE", type=Path, nargs="*", help="baseline files (default: all)"
    )
    add_baselines(check)
    add_format(check)
    check.set_defaults(run=run_check)


def _accept(actions: Actions) -> None:
    from pytest_ttnn_perf.core.settings import Update

    accept = actions.add_parser(
        "accept",
        usage="ttnn-perf baseline accept RUN.json [RUN.json ...] [TEST ...] [options] [-- ID ...]",
        help="accept the results of recorded runs as baselines",
        description="Accept the results of recorded runs, such as those of a CI job, as baselines. "
        "Several records of one commit become several sessions. What follows -- is the exact id "
        "of a test, not a pattern or a folder.",
    )
    accept.add_argument(
        "words", metavar="RUN.json", nargs="+", help="run records, followed by tests"
    )
    accept.add_argument(
        "--update",
        choices=[choice.value for choice in Update],
        help="what to accept: new results only, improved ones too (default), or worse ones too "
        "(default with --reason)",
    )
    accept.add_argument(
        "--reason", metavar="TEXT", help="why the change is accepted; required with --update all"
    )
    accept.add_argument(
        "--other-commit",
        action="store_true",
        help="accept records of a commit that is neither checked out nor before the one that is",
    )
    add_change(accept, run_accept)
    accept.set_defaults(passes_on=True)  # tests may stand after the options


def _refresh(actions: Actions) -> None:
    from pytest_ttnn_perf.cli.history import add_branch, add_source
    from pytest_ttnn_perf.core.settings import MAX_REFRESHED, MIN_REFRESHED

    refresh = actions.add_parser(
        "refresh",
        usage="ttnn-perf baseline refresh --from-history [TEST ...] [options] [-- ID ...]",
        help="make baselines of the last recorded runs of a branch",
        description="Make baselines of the last recorded runs of a branch, such as those of every "
        "night. What got worse than the gate's limit since it was last accepted is refused, "
        "however slowly; so is what changed within these runs. Exit 1 if a test is refused.",
    )
    refresh.add_argument("tests", metavar="TEST", nargs="*", help="only these tests")
    refresh.add_argument(
        "--from-history", action="store_true", required=True, help="take runs that were recorded"
    )
    add_source(refresh)
    add_branch(refresh)
    refresh.add_argument(
        "--last",
        metavar="N",
        type=number_within(MIN_REFRESHED, MAX_REFRESHED),
        default=MAX_REFRESHED,
        help=f"how many runs of the branch to look at (default: {MAX_REFRESHED})",
    )
    refresh.add_argument(
        "--reason", metavar="TEXT", help="what to store as the reason (default: which runs)"
    )
    add_change(refresh, run_refresh)
    refresh.set_defaults(passes_on=True, all_branches=False, dirty=False)


def _forget(actions: Actions) -> None:
    forget = actions.add_parser(
        "forget",
        usage="ttnn-perf baseline forget [TEST ...] [options] [-- ID ...]",
        help="remove baselines of tests, to record them anew",
        description="Remove the baselines of tests, to record them anew. What follows -- is the "
        "exact id of a test, not a pattern or a folder.",
    )
    forget.add_argument(
        "tests", metavar="TEST", nargs="*", help="an id, a file, or a pattern with * and ?"
    )
    forget.add_argument("--metric", metavar="NAME", help="only this metric of them")
    forget.add_argument("--key", metavar="KEY", help="only baselines of this hardware key")
    add_change(forget, run_forget)


def _prune(actions: Actions) -> None:
    prune = actions.add_parser(
        "prune",
        help="remove baselines of tests that no longer exist",
        description="Remove baselines of tests that no longer exist. Which tests exist is taken "
        "from the record of a full run, or found by collecting them here.",
    )
    prune.add_argument(
        "record", metavar="RUN.json", type=Path, nargs="?", help="the record of a full run"
    )
    prune.add_argument(
        "--collect",
        action="store_true",
        help="collect the tests with pytest instead of reading a record",
    )
    prune.add_argument("--full", action="store_true", help="the record contains all tests")
    prune.add_argument("--key", metavar="KEY", help="only baselines of this hardware key")
    add_change(prune, run_prune)


def _rename(actions: Actions) -> None:
    rename = actions.add_parser(
        "rename",
        help="rename baselines after their test, file or folder was renamed",
        description="Rename baselines, on all hardware, after their tests were renamed. OLD and "
        "NEW are a test with its parameters, a class, a file, or a folder that ends in /.",
    )
    rename.add_argument("before", metavar="OLD")
    rename.add_argument("after", metavar="NEW")
    rename.add_argument(
        "--keys",
        action="store_true",
        help="OLD and NEW are hardware keys: move all baselines of one to the other",
    )
    add_change(rename, run_rename)


def _merge_baselines(actions: Actions) -> None:
    from pytest_ttnn_perf.core.settings import Take

    merge = actions.add_parser(
        "merge",
        usage="ttnn-perf baseline merge BASE OURS THEIRS [--path P] [--take SIDE]\n"
        "       ttnn-perf baseline merge --path P --take SIDE",
        help="merge a baseline file that two branches changed; exit 1 on conflicts",
        description="Merge three versions of a baseline file, by test and session, into OURS. "
        "Without files: merge the versions of a file that is in conflict in git.",
    )
    merge.add_argument(
        "files",
        metavar="BASE OURS THEIRS",
        type=Path,
        nargs="*",
        help="the three versions of the file",
    )
    merge.add_argument(
        "--path", metavar="P", type=Path, help="the path of the file in the repository"
    )
    merge.add_argument(
        "--take",
        choices=[side.value for side in Take],
        help="which side to take for a test that both sides accepted (default: report a conflict)",
    )
    add_format(merge)
    merge.set_defaults(run=run_merge)
    install = actions.add_parser(
        "install-merge-driver",
        help="make git merge baselines with this command",
        description="Make git merge baselines with ttnn-perf: write the settings of this clone and "
        "lines in .gitattributes. Running it again changes nothing.",
    )
    install.add_argument(
        "--dry-run", action="store_true", help="show the changes without writing them"
    )
    add_baselines(install)
    add_format(install)
    install.set_defaults(run=run_install)
