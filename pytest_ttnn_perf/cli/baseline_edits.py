"""What a change makes of a baseline, metric by metric and file by file."""

from __future__ import annotations

import difflib
import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from pytest_ttnn_perf.cli.common import add_baselines, add_format
from pytest_ttnn_perf.core.baseline import baseline_path, key_folder, ops_path, split_test_id
from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.observation import lies_in
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.core.verdict import Outcome, Verdict
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.report.sentences import change_in_words
from pytest_ttnn_perf.report.tables import (
    METRIC,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_value,
    id_column,
    shown_path,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.baseline import MetricBaseline, TestBaseline
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.report.tables import Block


class FileFate(Enum):
    """What becomes of a file."""

    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"


class Level(Struct, frozen=True):
    """What a metric is compared with: the centre, in its unit, and the sessions it is taken of."""

    centre: float
    sessions: int


class MetricEdit(Struct, frozen=True):
    """One metric before and after; None where it is not stored.

    ``change`` is a fraction of the baseline, plus is worse; None where there is none.
    """

    metric: Metric
    what: str
    before: Level | None = None
    after: Level | None = None
    change: float | None = None


class TestEdit(Struct, frozen=True):
    """One test's baseline. ``renamed_to`` is its new id, if that is what changes."""

    __test__ = False  # a record, not something for pytest to collect

    key: str
    test: str
    metrics: tuple[MetricEdit, ...] = ()
    renamed_to: str | None = None
    note: str | None = None


class FileEdit(Struct, frozen=True):
    """A file, as the user would name it from where they stand, and what becomes of it."""

    path: str
    fate: FileFate


class Refusal(Struct, frozen=True):
    """A test whose result is not accepted, why, and what to do about it."""

    key: str
    test: str
    why: str
    remedy: str


class Edits(Struct, frozen=True):
    """All that a command would do. ``remarks`` are said beside it."""

    tests: tuple[TestEdit, ...] = ()
    files: tuple[FileEdit, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    remarks: tuple[str, ...] = ()


def metric_edits(
    before: TestBaseline | None, after: TestBaseline | None, what: Mapping[str, str]
) -> tuple[MetricEdit, ...]:
    """Return the metrics that ``what`` names, with what becomes of each."""
    old = before.metrics if before else {}
    new = after.metrics if after else {}
    return tuple(
        _metric_edit(old.get(name), new.get(name), text) for name, text in sorted(what.items())
    )


def _metric_edit(
    before: MetricBaseline | None, after: MetricBaseline | None, what: str
) -> MetricEdit:
    stored = after or before
    assert stored is not None, "a metric that is stored neither before nor after does not change"
    then, now = _level_of(before), _level_of(after)
    same = before is not None and after is not None and before.metric == after.metric
    change = _worsening(stored.metric, then.centre, now.centre) if same and then and now else None
    return MetricEdit(stored.metric, what, then, now, change)


def _level_of(baseline: MetricBaseline | None) -> Level | None:
    if baseline is None:
        return None
    return Level(centre_of(baseline), len(baseline.current))


def _worsening(metric: Metric, before: float, after: float) -> float | None:
    """Return the change as the gate reckons it: a fraction, plus is worse."""
    if before == after:
        return 0.0
    if metric.better is Better.HIGHER:
        # Of a throughput, the time per unit of work; of an accuracy, what is lost of it.
        lower, whole = (before - after), (after if metric.compared_by_ratio else before)
        return lower / abs(whole) if whole else None
    return (after - before) / abs(before) if before else None


def file_edits(
    store: BaselineStore,
    changes: Iterable[tuple[Hardware, Mapping[str, TestBaseline | None]]],
    *,
    cwd: Path,
) -> tuple[FileEdit, ...]:
    """Return what becomes of each file if tests come to have these baselines, None for none."""
    fates: dict[Path, FileFate] = {}
    for hardware, tests in changes:
        folder = key_folder(store.root, hardware)
        by_file: dict[str, dict[str, TestBaseline | None]] = {}
        for test, after in tests.items():
            by_file.setdefault(split_test_id(test)[0], {})[test] = after
            table = folder / ops_path(test)
            if after is None and table.exists():
                fates[table] = FileFate.REMOVE
            elif after is not None and after.op_table is not None:
                fates[table] = FileFate.CHANGE if table.exists() else FileFate.CREATE
        for test_file, own in by_file.items():
            path = baseline_path(store.root, hardware, test_file)
            fates[path] = _fate(path, store.names_in(hardware, test_file), own)
    return tuple(FileEdit(shown_path(path, cwd), fates[path]) for path in sorted(fates))


def _fate(path: Path, stored: frozenset[str], own: Mapping[str, TestBaseline | None]) -> FileFate:
    names = {split_test_id(test)[1]: after for test, after in own.items()}
    left = (stored - names.keys()) | {name for name, after in names.items() if after is not None}
    if not left:
        return FileFate.REMOVE
    return FileFate.CHANGE if path.exists() else FileFate.CREATE


def edits_listing(edits: Edits, *, dry_run: bool) -> Listing:
    """Lay out what is about to happen; with ``dry_run``, what would."""
    rows = [(edit, metric) for edit in edits.tests for metric in edit.metrics]
    lines: list[Block] = [*_COLUMNS.table(rows)]
    lines += [f"{edit.test}: {edit.note}" for edit in edits.tests if edit.note]
    for refusal in edits.refusals:
        lines += [f"refused {refusal.test} on {refusal.key}: {refusal.why}"]
        lines += [f"  {refusal.remedy}"] if refusal.remedy else []
    lines += edits.remarks
    would = "would " if dry_run else ""
    lines += [f"{would}{file.fate.value} {file.path}" for file in edits.files]
    lines.append(_count(edits, dry_run=dry_run))
    document = _document(edits, dry_run=dry_run)
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(rows))


def _count(edits: Edits, *, dry_run: bool) -> str:
    metrics = sum(len(edit.metrics) for edit in edits.tests)
    parts = [f"{counted(len(edits.tests), 'test')}, {counted(metrics, 'metric')}"]
    parts += [f"{len(edits.refusals)} refused"] if edits.refusals else []
    if not edits.tests:
        parts = ["nothing to write", *parts[1:]]
    return "; ".join(parts) + ("; dry run: nothing is written" if dry_run else "")


def _level(edit: MetricEdit, level: Level | None) -> str:
    if level is None:
        return "-"
    beside = edit.before.centre if edit.before else None
    value = format_value(edit.metric, level.centre, beside=beside)
    return f"{value} ({counted(level.sessions, 'session')})"


def _change_text(edit: MetricEdit) -> str:
    """Say how much better or worse the centre becomes; "-" where there is nothing to compare."""
    if edit.before is None or edit.after is None:
        return "-"
    if edit.change is None and edit.before.centre:
        return "not comparable"
    return change_in_words(Verdict(edit.metric, Outcome.WITHIN, change=edit.change))


_COLUMNS: Final[Columns[tuple[TestEdit, MetricEdit]]] = Columns(
    Column("key", lambda row: row[0].key, "key", once=True,
           title=lambda row: row[0].key),
    id_column(lambda row: row[0].test, renamed_to=lambda row: row[0].renamed_to),
    Column("renamed_to", lambda row: row[0].renamed_to),
    Column("metric", lambda row: row[1].metric.name, "metric", fit=METRIC),
    Column("what", lambda row: row[1].what),
    Column("unit", lambda row: row[1].metric.unit),
    Column("before", lambda row: row[1].before and row[1].before.centre, "before",
           lambda row: _level(row[1], row[1].before), right=True, fit=Fit(drop=1)),
    Column("before_sessions", lambda row: row[1].before and row[1].before.sessions),
    Column("after", lambda row: row[1].after and row[1].after.centre, "after",
           lambda row: _level(row[1], row[1].after), right=True),
    Column("after_sessions", lambda row: row[1].after and row[1].after.sessions),
    Column("change", lambda row: row[1].change, "change", lambda row: _change_text(row[1])),
    Column("", lambda row: row[1].what, "what", fit=Fit(least=10)),
)  # fmt: skip


def _document(edits: Edits, *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "tests": [
            {
                "key": edit.key,
                "test": edit.test,
                "renamed_to": edit.renamed_to,
                "note": edit.note,
                "metrics": [
                    {
                        "metric": metric.metric.name,
                        "unit": metric.metric.unit,
                        "what": metric.what,
                        "before": metric.before and to_builtins(metric.before),
                        "after": metric.after and to_builtins(metric.after),
                        "change": metric.change,
                    }
                    for metric in edit.metrics
                ],
            }
            for edit in edits.tests
        ],
        "refused": [to_builtins(refusal) for refusal in edits.refusals],
        "files": [{"path": file.path, "fate": file.fate.value} for file in edits.files],
        "remarks": list(edits.remarks),
    }


def add_change(
    parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], Result]
) -> None:
    """Add options of commands that change baselines."""
    parser.add_argument(
        "--dry-run", action="store_true", help="show the changes without writing them"
    )
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def edited_settings(options: argparse.Namespace) -> Settings:
    """Return the project's settings, with the baselines that a command is to change."""
    settings = project_settings()
    return replace(settings, baselines=options.baselines) if options.baselines else settings


def repeated_options(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the options that a command which is offered must repeat."""
    return ("--baselines", str(options.baselines)) if options.baselines else ()


def show_then_write(
    edits: Edits,
    options: argparse.Namespace,
    write: Callable[[], Iterable[str]],
    *,
    failed: bool = False,
) -> Result:
    """Return the result that prints edits, and then makes them unless it is a dry run.

    ``write`` returns what could not be written; an error that it raises is one of those.
    """
    text = edits_listing(edits, dry_run=options.dry_run).text(options.format)
    if options.dry_run:
        return Result(text)
    if not edits.tests:
        return Result(text, failed=failed)

    def then() -> Result:
        try:
            refused = list(write())
        except TtnnPerfError as error:
            refused = [str(error)]
        errors = "".join(f"ttnn-perf: not written: {reason}\n" for reason in refused)
        done = ""
        if not refused and options.format == "table":  # the other shapes are one document
            for file in edits.files:
                verb = "removed" if file.fate is FileFate.REMOVE else "wrote"
                done += inert(f"{verb} {file.path}") + "\n"
        return Result(done, failed=bool(refused), errors=errors)

    return Result(text, failed=failed, then=then)


def select_tests(
    tests: Collection[str], selectors: Sequence[str], ids: Sequence[str] = (), *, where: str
) -> tuple[str, ...]:
    """Return the tests that any selector names, and those of ``ids``, in their order.

    All without a selector or an id. What looks like a pattern or a folder is none among ``ids``.

    Raises:
        UsageError: a selector or an id names none; with the nearest names there are.
    """
    if not selectors and not ids:
        return tuple(tests)
    named: set[str] = set()
    for word in selectors:
        found = [test for test in tests if word and matches(test, word)]
        named.update(found or _unknown(word, tests, where))
    for word in map(_as_typed, ids):
        named.update([word] if word in tests else _unknown(word, tests, where))
    return tuple(test for test in tests if test in named)


def _as_typed(word: str) -> str:
    """Return an argument as the text that it stands for: half a surrogate pair comes as bytes."""
    try:
        return word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")
    except UnicodeError:
        return word


def _unknown(word: str, tests: Collection[str], where: str) -> NoReturn:
    message = f"{word or 'an empty word'} names no test in {where}"
    close = near(word, tests)
    if close:
        raise UsageError(f"{message}; near to it: {', '.join(close)}")
    raise UsageError(f"{message}, which has {counted(len(tests), 'test') if tests else 'none'}")


def matches(test: str, selector: str) -> bool:
    """Return whether a selector names a test. Brackets are those of parameters.

    >>> matches("models/test_a.py::test_x[8]", "models/test_*::test_x[?]")
    True
    """
    place = selector.removeprefix("./").rstrip("/")
    if lies_in(test, place):
        return True
    if not set(place) & set("*?"):
        return False
    pattern = re.escape(place).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, test) is not None


def near(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that may have been meant, the nearest first."""
    return tuple(difflib.get_close_matches(name, names, n=3, cutoff=0.5))
