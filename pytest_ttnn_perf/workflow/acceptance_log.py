"""Who accepted which numbers, and why: from the baseline files, and from their history in git."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf._support.json_text import parse_json
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.baselines.schema import decode_file
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.processes.git_files import contents, history, top_level
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_value
from pytest_ttnn_perf.report.tables import table_lines
from pytest_ttnn_perf.workflow.orphans import stored_tests
from pytest_ttnn_perf.workflow.selection import selected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.model.baseline import BaselineFile, TestBaseline
    from pytest_ttnn_perf.processes.git_files import Committed

_HEADINGS: Final = (
    "key", "test", "accepted", "commit", "reason", "author", "committed", "revision", "values",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Version:
    """A baseline file as a commit left it; None is the file as it is now, in no commit."""

    content: BaselineFile
    committed: Committed | None


def list_acceptances(root: Path, tests: Sequence[str], *, shape: str) -> str:
    """List every accept of every test, newest first.

    Raises:
        UsageError: a selector names no test.
        InputError: the folder is missing, or a file in it is malformed.
    """
    files = list(BaselineStore(root).all_files())
    names = dict.fromkeys(test for test, _ in stored_tests(files))
    wanted = frozenset(selected(names, tests, where=str(root)))
    in_git = top_level(root.absolute()) is not None
    rows: list[tuple[object, ...]] = []
    for file in files:
        if any(test in wanted for test, _ in stored_tests([file])):
            versions = _versions(file) if in_git else [_Version(file.content, None)]
            rows += _rows(file, versions, wanted)
    headings = ("key", "test", "accepted", "commit", "by", "committed", "values", "reason")
    shown = [_shown(row) for row in rows]
    lines = table_lines(headings, shown) if shown else []
    told = counted(len(rows), "accept")
    told += "" if in_git else "; no git here: only the last of each test is known"
    document = {"accepts": [dict(zip(_HEADINGS, row, strict=True)) for row in rows]}
    return Listing((*lines, told), document, _HEADINGS, tuple(rows)).text(shape)


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
