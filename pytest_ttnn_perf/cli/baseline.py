"""``ttnn-perf baseline``: list, check, forget, prune and rename baselines."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.cli.baseline_edits import (
    Edit,
    Edits,
    add_change,
    edited_settings,
    metric_edits,
)
from pytest_ttnn_perf.cli.common import (
    add_argument,
    add_baselines,
    add_format,
    near,
    select_tests,
)
from pytest_ttnn_perf.core.baseline import decode_file, split_test_id
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import parse_json
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.observation import Coverage, Run, lies_in
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.health import (
    hardware_of,
    orphans_in,
    stored_tests,
)
from pytest_ttnn_perf.gate.judging import judge_run
from pytest_ttnn_perf.gate.ratios import POLICY, centre_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.machine.git import stored_version, top_level
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    METRIC,
    Column,
    Columns,
    Listing,
    Result,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.core.baseline import (
        Acceptance,
        MetricBaseline,
        TestBaseline,
    )
    from pytest_ttnn_perf.gate.store import StoredFile
    from pytest_ttnn_perf.report.tables import Block


def add_list(parser: argparse.ArgumentParser) -> None:
    add_baselines(parser)
    add_format(parser)


class _StoredMetric(NamedTuple):
    """A stored metric of a test."""

    key: str
    test: str
    metric: str
    baseline: MetricBaseline
    accepted: Acceptance


def _sessions_text(baseline: MetricBaseline) -> str:
    sessions, runs = len(baseline.current), baseline.runs
    provisional = baseline.metric.compared_by_ratio and runs < POLICY.few
    return f"{sessions} ({counted(runs, 'run')})" if provisional else str(sessions)


_STORED: Final[Columns[_StoredMetric]] = Columns(
    Column("key", lambda s: s.key, "key", once=True),
    id_column(lambda s: s.test),
    Column("metric", lambda s: s.metric, "metric", fit=METRIC),
    Column("centre", lambda s: centre_of(s.baseline), "baseline",
           lambda s: format_value(s.baseline.metric, centre_of(s.baseline)), right=True),
    Column("unit", lambda s: s.baseline.metric.unit),
    Column("sessions", lambda s: len(s.baseline.sessions), "sessions",
           lambda s: _sessions_text(s.baseline), right=True, fit=DROPPED[2]),
    Column("runs", lambda s: s.baseline.runs),
    Column("since", lambda s: s.baseline.since),
    Column("current", lambda s: len(s.baseline.current)),
    Column("accepted", lambda s: s.accepted.at, "accepted", lambda s: (s.accepted.at or "-")[:10],
           once=True, fit=DROPPED[3]),
    Column("commit", lambda s: s.accepted.commit, "commit", lambda s: s.accepted.commit or "-",
           once=True, fit=DROPPED[1]),
    Column("reason", lambda s: s.accepted.reason, "reason", lambda s: s.accepted.reason or "-",
           once=True, fit=BELOW),
)  # fmt: skip


def run_list(options: argparse.Namespace) -> Result:
    """List all stored metrics: value, sessions, when and why they were accepted."""
    root = options.baselines or project_settings().baselines
    found = [
        _StoredMetric(
            file.content.hardware.key, _id_of(file, name), metric, baseline, test.accepted
        )
        for file in BaselineStore(root).all_files()
        for name, test in sorted(file.content.tests.items())
        for metric, baseline in sorted(test.metrics.items())
    ]
    tests = len({(stored.key, stored.test) for stored in found})
    count = f"{counted(len(found), 'metric')} of {counted(tests, 'test')}"
    lines: tuple[Block, ...] = (*_STORED.table(found), count)
    document = {"baselines": _STORED.objects(found)}
    listing = Listing(lines, document, _STORED.names, _STORED.rows(found))
    return Result(listing.text(options.format))


def _id_of(file: StoredFile, name: str) -> str:
    place = file.test_file or file.path.stem
    return f"{place}::{name}" if name else place


def add_check(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "files FILE", "baseline files (default: all)", type=Path, nargs="*")
    add_baselines(parser)
    add_format(parser)


_REMEDY: Final = 'ttnn-perf baseline accept RUN.json --reason "why"'
_PROBLEM: Final = ("file", "test", "problem")


def run_check(options: argparse.Namespace) -> Result:
    """Check that baseline files are valid, and losses have a reason.

    What is worse than in the last commit must have been accepted with a reason. For hooks of
    git, and for reviews.
    """
    root: Path = options.baselines or project_settings().baselines
    if not root.is_dir():
        raise InputError(root, "expected a folder of baselines, found nothing")
    store = BaselineStore(root)
    files = _asked(root, options.files)
    rows = tuple(problem for file in files for problem in _problems(store, file))
    known = "" if top_level(root.absolute()) else "; no git here: nothing to compare them with"
    lines = [f"{test or file}: {problem}" for file, test, problem in rows]
    lines += [f"  accept: {_REMEDY}"] if any(test for _, test, _ in rows) else []
    lines.append(f"{counted(len(files), 'file')} checked, {counted(len(rows), 'problem')}{known}")
    document = {
        "files": len(files),
        "problems": [dict(zip(_PROBLEM, row, strict=True)) for row in rows],
    }
    listing = Listing(tuple(lines), document, _PROBLEM, rows)
    return Result(listing.text(options.format), failed=bool(rows))


def _asked(root: Path, files: Sequence[Path]) -> list[Path]:
    if not files:
        return sorted(file for file in root.rglob("*.json") if file.parent != root)
    found = []
    for file in files:
        try:
            inside = file.absolute().relative_to(root.absolute())
        except ValueError:
            message = f"{file} is not in {root}, where baselines are; say --baselines DIR"
            raise UsageError(message) from None
        if inside.suffix == ".json" and (root / inside).exists():  # else it is gone
            found.append(root / inside)
    return found


def _problems(store: BaselineStore, path: Path) -> Iterator[tuple[str, str, str]]:
    try:
        now = store.read(path)
        for name, test in now.content.tests.items():
            if test.ops is not None:
                store.ops_of(now.content.hardware, _id_of(now, name))
    except InputError as error:
        yield str(error.file), "", error.problem
        return
    text = stored_version(path.absolute(), "HEAD:")
    try:
        before = parse_json(text, decode_file, file=path).tests if text is not None else {}
    except InputError:  # it was no baseline then
        before = {}
    for name, test in sorted(before.items()):
        if name in now.content.tests:
            for problem in _without_reason(test, now.content.tests[name]):
                yield str(path), _id_of(now, name), problem


def _without_reason(before: TestBaseline, now: TestBaseline) -> Iterator[str]:
    """Yield metrics that got worse, or went, without a reason."""
    if now.accepted.reason and now.accepted != before.accepted:
        return
    for name, stored in sorted(before.metrics.items()):
        changed = now.metrics.get(name)
        if changed is None:
            yield f"{name} is gone from the baseline, without a reason"
            continue
        # Sessions that are added to those before decide nothing.
        adds = stored.since == changed.since and set(stored.sessions) <= set(changed.sessions)
        if not adds and _is_worse(stored, changed):
            metric = stored.metric
            then, later = (format_value(metric, centre_of(each)) for each in (stored, changed))
            yield f"{name} is worse than in the last commit, without a reason: {then} → {later}"


def _is_worse(before: MetricBaseline, now: MetricBaseline) -> bool:
    if before.metric.differs_from(now.metric) or before.metric.source is not now.metric.source:
        return True  # they cannot be compared
    then, later = centre_of(before), centre_of(now)
    if before.metric.better is Better.EQUAL:
        return then != later
    return later < then if before.metric.better is Better.HIGHER else later > then


def add_forget(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf baseline forget [TEST ...] [options] [-- ID ...]"
    add = partial(add_argument, parser)
    add("tests TEST", "an id, a file, or a pattern with * and ?", nargs="*")
    add("--metric NAME", "only this metric of them")
    add("--key KEY", "only baselines of this hardware key")
    add_change(parser)


def run_forget(options: argparse.Namespace) -> Result:
    """Remove the baselines of tests, to record them anew.

    What follows -- is the exact id of a test, not a pattern or a folder.
    """
    if not options.tests and not options.ids:
        raise UsageError("name the tests to forget: ttnn-perf baseline forget TEST ...")
    store, metric = BaselineStore(edited_settings(options).baselines), options.metric
    stored: dict[str, dict[Hardware, TestBaseline]] = {}
    for test, file in stored_tests(_files(store, options.key)):
        hardware, own = file.content.hardware, file.content.tests[split_test_id(test)[1]]
        if options.key in {None, hardware.key} and metric in {None, *own.metrics}:
            stored.setdefault(test, {})[hardware] = own
    where = f"{store.root}{f' with the metric {metric}' if metric else ''}"
    edits = Edits(store)
    for test in select_tests(stored, options.tests, options.ids, where=where):
        if len(stored[test]) > 1:
            several = ", ".join(sorted(hardware.key for hardware in stored[test]))
            raise UsageError(f"{test} has baselines on {several}: say which with --key KEY")
        ((hardware, before),) = stored[test].items()
        gone = before.metrics if metric is None else (metric,)
        change = partial(_without, metric=metric)
        edits.add(hardware, test, change, dict.fromkeys(gone, "removed"))
    return edits.result(options)


def _without(test: TestBaseline | None, metric: str | None) -> TestBaseline | None:
    if test is None or metric is None:
        return None
    left = {name: stored for name, stored in test.metrics.items() if name != metric}
    return replace(test, metrics=left) if left else None


def _files(store: BaselineStore, key: str | None) -> list[StoredFile]:
    """Return all files; refuse a key that none of them has."""
    files = list(store.all_files())
    keys = sorted({file.content.hardware.key for file in files})
    if key is not None and key not in keys:
        close = near(key, keys) or tuple(keys)
        raise UsageError(f"there are no baselines of {key}, only of: {', '.join(close)}")
    return files


def add_prune(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("record RUN.json", "the record of a full run", type=Path)
    add("--full", "the record contains all tests")
    add_change(parser)


def run_prune(options: argparse.Namespace) -> Result:
    """Remove baselines of tests that no longer exist.

    Which tests exist is taken from the record of a full run.
    """
    settings = edited_settings(options)
    store = BaselineStore(settings.baselines)
    run = judge_run(_full_run(options.record, full=options.full), store, settings)
    edits = Edits(store)
    for orphan in orphans_in(run, list(store.all_files()), used=hardware_of(run)):
        stored = store.find(orphan.hardware, orphan.test)
        if stored is not None:
            words = dict.fromkeys(stored.metrics, "removed")
            edits.add(orphan.hardware, orphan.test, _nothing, words)
    return edits.result(options)


def _nothing(_: TestBaseline | None) -> None:
    return None


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


def add_rename(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="OLD")
    parser.add_argument("after", metavar="NEW")
    add_change(parser)


_Moves = dict[Hardware, dict[str, str]]


def run_rename(options: argparse.Namespace) -> Result:
    """Rename baselines, on all hardware, after their tests were renamed.

    OLD and NEW are a test with its parameters, a class, a file, or a folder that ends in /.
    """
    store = BaselineStore(edited_settings(options).baselines)
    edits = Edits(store)
    for hardware, names in _moves(store, options.before, options.after).items():
        for old, new in names.items():
            stored = store.find(hardware, old)
            assert stored is not None, f"{old} was found, and is not there"
            table = store.ops_of(hardware, old)
            moved = replace(stored, ops=None, op_table=table)
            put = partial(_put, moved, f"{new} has a baseline of its own on {hardware.key}")
            edits.after.setdefault(hardware, {})[old] = None
            edits.after[hardware][new] = put(store.find(hardware, new))
            edits.changes.setdefault(hardware, {})[new] = put
            # Another test may take its id.
            edits.changes[hardware].setdefault(old, partial(_leave, stored, old))
            metrics = metric_edits(stored, stored, dict.fromkeys(stored.metrics, "renamed"))
            edits.tests.append(Edit(hardware.key, old, metrics, new))
    return edits.result(options)


def _put(moved: TestBaseline, refusal: str, taken: TestBaseline | None) -> TestBaseline:
    """Put a baseline under its new id, unless another one is there."""
    if taken is not None and _content(taken) != _content(moved):
        message = f"{refusal}, accepted {taken.accepted.at}"
        hint = "remove it with ttnn-perf baseline forget first, or leave both"
        raise UsageError(f"{message}: {hint}")
    return moved


def _content(test: TestBaseline) -> TestBaseline:
    return replace(test, ops=None, op_table=None)


def _leave(stored: TestBaseline, test: str, now: TestBaseline | None) -> None:
    """Leave an id, unless a run has changed its baseline meanwhile."""
    if now not in (None, stored):
        raise UsageError(f"{test} was changed meanwhile: rename it again")


def _moves(store: BaselineStore, before: str, after: str) -> _Moves:
    if not before.strip("./") or not after.strip("./") or before == after:
        raise UsageError(f"expected two names that differ, found {before!r} and {after!r}")
    first, second = _kind(before), _kind(after)
    if first != second:
        raise UsageError(f"{before} is a {first} and {after} a {second}: give two of one kind")
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


def _kind(name: str) -> str:
    if name.endswith("/"):
        return "folder"
    place = name.removesuffix("::")
    if "::" in place:
        return "test"
    # Of baselines that other programs record, a file may have any name.
    return "file" if name.endswith("::") or "." in place.rpartition("/")[2] else "folder or file"
