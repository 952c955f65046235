"""``ttnn-perf baseline list``: what is stored, and who accepted it and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.cli.shared import project_settings
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.processes.git import contents, history, top_level
from pytest_ttnn_perf.records.baseline import decode_file
from pytest_ttnn_perf.report.numbers import Listing, Result, format_value, table_lines
from pytest_ttnn_perf.run.health import stored_tests

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.processes.git import Committed
    from pytest_ttnn_perf.records.baseline import BaselineFile, TestBaseline


_BASELINE_HEADINGS = (
    "key", "test", "metric", "centre", "unit", "sessions", "since", "current", "accepted",
    "commit", "reason",
)  # fmt: skip


def run(options: argparse.Namespace) -> Result:
    """Return every stored metric, or with ``--log`` who accepted it.

    Raises:
        UsageError: tests are named without ``--log``, or there are none of these.
        InputError: the folder is missing, or a file in it is malformed.
    """
    root = options.baselines or project_settings().baselines
    if options.log:
        return Result(list_acceptances(root, options.tests).text(options.format))
    if options.tests:
        message = f"tests are named with --log: ttnn-perf baseline list --log {options.tests[0]}"
        raise UsageError(message)
    return Result(list_baselines(root).text(options.format))


def list_baselines(root: Path) -> Listing:
    """List every stored metric: its centre, how many sessions it rests on, and why it is there."""
    rows: list[tuple[object, ...]] = []
    shown: list[tuple[str, ...]] = []
    for file in BaselineStore(root).all_files():
        for row, line in _baseline_rows(file):
            rows.append(row)
            shown.append(line)
    headings = ("key", "test", "metric", "baseline", "sessions", "accepted", "commit", "reason")
    lines = table_lines(headings, shown, right=frozenset({3, 4})) if shown else []
    tests = len({(row[0], row[1]) for row in rows})
    count = f"{counted(len(rows), 'metric')} of {counted(tests, 'test')}"
    document = {
        "baselines": [dict(zip(_BASELINE_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing((*lines, count), document, _BASELINE_HEADINGS, tuple(rows))


def _baseline_rows(file: StoredFile) -> Iterator[tuple[tuple[object, ...], tuple[str, ...]]]:
    key = file.content.hardware.key
    place = file.test_file or file.path.stem
    for name, test in sorted(file.content.tests.items()):
        nodeid = f"{place}::{name}" if name else place
        accepted = test.accepted
        for metric, stored in sorted(test.metrics.items()):
            centre = centre_of(stored)
            count, since, current = len(stored.sessions), stored.since, len(stored.current)
            provenance = (accepted.at, accepted.commit, accepted.reason)
            unit, value = stored.metric.unit, format_value(stored.metric, centre)
            sessions = "1 (provisional)" if count == 1 else str(current)
            row = (key, nodeid, metric, centre, unit, count, since, current, *provenance)
            yield (
                row,
                (key, nodeid, metric, value, sessions, *(text or "-" for text in provenance)),
            )


_HEADINGS: Final = (
    "key", "test", "accepted", "commit", "reason", "author", "committed", "revision", "values",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Version:
    """A baseline file as a commit left it; None is the file as it is now, in no commit."""

    content: BaselineFile
    committed: Committed | None


def list_acceptances(root: Path, tests: Sequence[str]) -> Listing:
    """List every accept of every test, newest first."""
    files = list(BaselineStore(root).all_files())
    names = dict.fromkeys(test for test, _ in stored_tests(files))
    wanted = frozenset(select_tests(names, tests, where=str(root)))
    in_git = top_level(root.absolute()) is not None
    rows: list[tuple[object, ...]] = []
    for file in files:
        if any(test in wanted for test, _ in stored_tests([file])):
            versions = _versions(file) if in_git else [_Version(file.content, None)]
            rows += _rows(file, versions, wanted)
    headings = ("key", "test", "accepted", "commit", "by", "committed", "values", "reason")
    shown = [_shown(row) for row in rows]
    lines = table_lines(headings, shown) if shown else []
    count = counted(len(rows), "accept")
    count += "" if in_git else "; no git here: only the last of each test is known"
    document = {"accepts": [dict(zip(_HEADINGS, row, strict=True)) for row in rows]}
    return Listing((*lines, count), document, _HEADINGS, tuple(rows))


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


def _rows(
    file: StoredFile, versions: Sequence[_Version], wanted: frozenset[str]
) -> Iterator[tuple[object, ...]]:
    key = file.content.hardware.key
    for test, _ in stored_tests([file]):
        if test in wanted:
            name = test.partition("::")[2]
            for baseline, committed in _accepts(name, versions):
                yield _row(key, test, baseline, committed)


def _accepts(
    name: str, versions: Sequence[_Version]
) -> Iterator[tuple[TestBaseline, Committed | None]]:
    """Yield a test as it was accepted, with the commit that brought it: the oldest that has it.

    What is stored now comes first, also where a merge has brought it back.
    """
    brought: dict[str, tuple[TestBaseline, Committed | None]] = {}
    for version in versions:
        test = version.content.tests.get(name)
        if test is not None:
            brought[repr(test.accepted)] = (test, version.committed)
    yield from brought.values()


def _row(
    key: str, test: str, baseline: TestBaseline, committed: Committed | None
) -> tuple[object, ...]:
    accepted = baseline.accepted
    values = {name: centre_of(stored) for name, stored in sorted(baseline.metrics.items())}
    said = "; ".join(
        f"{name} {format_value(baseline.metrics[name].metric, value)}"
        for name, value in values.items()
    )
    who = (committed.author, committed.date, committed.commit) if committed else (None, None, None)
    return (key, test, accepted.at, accepted.commit, accepted.reason, *who, said)


def _shown(row: tuple[object, ...]) -> tuple[str, ...]:
    key, test, at, commit, reason, author, date, _, values = (
        "-" if cell is None else str(cell) for cell in row
    )
    return key, test, at, commit, author, date[:10], values, reason
