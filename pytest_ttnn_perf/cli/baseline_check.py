"""``ttnn-perf baseline check``: baselines are valid, and what got worse in them has a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.processes.git import committed_version, top_level
from pytest_ttnn_perf.records.baseline import decode_file
from pytest_ttnn_perf.records.metric import Better
from pytest_ttnn_perf.report.numbers import Listing, Result, format_value
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.records.baseline import BaselineFile, MetricBaseline, TestBaseline

_REMEDY: Final = 'ttnn-perf baseline accept RUN.json --reason "why"'


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is wrong with a file, or with a test in it."""

    file: str
    test: str
    problem: str

    def __str__(self) -> str:
        return f"{self.test or self.file}: {self.problem}"


_NAMES: Final = ("file", "test", "problem")


def run(options: argparse.Namespace) -> Result:
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
    found = [problem for file in files for problem in _check(store, file)]
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


def _check(store: BaselineStore, path: Path) -> Iterator[_Problem]:
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
