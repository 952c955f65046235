"""``ttnn-perf baseline list``: what is stored, and who accepted it and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.gate.ratios import RUNS_FOR_SPREAD, centre_of
from pytest_ttnn_perf.processes.git import contents, history, top_level
from pytest_ttnn_perf.records.baseline import Accepted, MetricBaseline, decode_file
from pytest_ttnn_perf.report.layout import BELOW, DROPPED, METRIC, Fit
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    Result,
    format_value,
    id_column,
)
from pytest_ttnn_perf.report.sentences import runs_seen
from pytest_ttnn_perf.run.health import stored_tests
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.processes.git import Committed
    from pytest_ttnn_perf.records.baseline import BaselineFile, TestBaseline
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class _Stored:
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


def run(options: argparse.Namespace) -> Result:
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


@dataclass(frozen=True, slots=True)
class _Version:
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


@dataclass(frozen=True, slots=True)
class _Acceptance:
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
