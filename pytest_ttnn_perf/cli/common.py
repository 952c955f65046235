"""The captures that a command line names: what each file holds, and which belong together.

Files of different kinds belong to one program, and are read together. Several files of one kind are
several captures. Anything else is refused: it is not clear which files belong together.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import time
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import (
    DATABASE,
    OP_TABLES,
    ArtifactKind,
    kernels_in,
    kind_of,
    op_table_of,
    report_of,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import Input, Subject
from pytest_ttnn_perf.report.tables import Listing, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.report.tables import Block


# Arguments and help texts of commands, by topic; here those that several commands share.


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Declare ``--format``, with shapes that only one command has."""
    choices = ("table", "json", "csv", *more)
    parser.add_argument(
        "--format", choices=choices, default="table", help="output format (default: table)"
    )


def add_window(parser: argparse.ArgumentParser) -> None:
    """Declare the part of a capture: ``--region``, or ``--start`` and ``--end``."""
    parser.add_argument("--region", metavar="NAME", help="only this region, such as decode")
    parser.add_argument("--start", metavar="SIGNPOST", help="only ops after this signpost")
    parser.add_argument(
        "--end", metavar="SIGNPOST", help="only ops before this signpost (default: NAME_END)"
    )


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Declare ``--baselines``."""
    parser.add_argument(
        "--baselines", metavar="DIR", type=Path, help="folder of the baselines (default: baselines)"
    )


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare how recorded runs are judged."""
    from pytest_ttnn_perf.core.settings import Checklist, Missing

    add_baselines(parser)
    parser.add_argument(
        "--missing",
        choices=[choice.value for choice in Missing],
        help="what happens to a test without a comparable baseline (default: fail)",
    )
    parser.add_argument(
        "--checklist",
        choices=[choice.value for choice in Checklist],
        help="whether errors of the checklist fail the run (default: enforce)",
    )
    add_format(parser, "markdown", "gitlab")


def add_artifacts(parser: argparse.ArgumentParser) -> None:
    """Declare what is looked at."""
    parser.add_argument("--csv", metavar="FILE", type=Path, help="an ops_perf_results CSV")
    parser.add_argument(
        "--db", metavar="FILE", type=Path, help="a report database, db.sqlite, or its folder"
    )
    parser.add_argument(
        "--log", metavar="FILE", type=Path, help="output of tt-lang, or of its simulator"
    )
    add_window(parser)


def add_change(parser: argparse.ArgumentParser, run: str) -> None:
    """Declare what commands share that change baselines; ``run`` names the function of one."""
    parser.add_argument(
        "--dry-run", action="store_true", help="show the changes without writing them"
    )
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def number_within(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number within limits."""

    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            message = f"expected a whole number from {least} to {most}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return read


T = TypeVar("T")

_INPUTS: Final = {
    **dict.fromkeys(OP_TABLES, Input.OPS),
    ArtifactKind.REPORT_DB: Input.REPORT,
    ArtifactKind.GRAPH_JSON: Input.REPORT,
    ArtifactKind.TTLANG_LOG: Input.KERNELS,
    ArtifactKind.PERF_SUMMARY_JSON: Input.KERNELS,
    ArtifactKind.SIM_TRACE: Input.KERNELS,
    ArtifactKind.SIM_STATS: Input.KERNELS,
}


def from_here(path: Path) -> Path:
    """Return a path below the current folder as seen from there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def newest_record(settings: Settings) -> Path | None:
    """Return the record of the last run, as seen from here; their names begin with their time."""
    found = max((settings.artifacts / "runs").glob("*.json"), default=None)
    return None if found is None else from_here(found)


class Source(Struct, frozen=True):
    """A file, what it is read as, and in words what was found.

    ``searched``: it was found in a folder.
    """

    file: Path
    input: Input
    told: str
    searched: bool = False


class Capture(Struct, frozen=True):
    """Files of one program. ``heading`` names them where the command does not make that clear."""

    sources: tuple[Source, ...]
    heading: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The files, as they were given."""
        return " + ".join(self.files)

    @property
    def files(self) -> tuple[str, ...]:
        """The files, for programs and for commands that are printed."""
        return tuple(str(source.file) for source in self.sources)

    def read(self, options: argparse.Namespace) -> Subject:
        """Read all files; of an op table, the region or the window that options choose.

        Raises:
            InputError: one is not what it should be.
            UsageError: the op table lacks the window, or there is none to choose from.
        """
        files = {source.input: source.file for source in self.sources}
        if Input.OPS not in files and (options.start or options.end or options.region):
            message = f"--region, --start and --end select ops of an op table; {self.name} has none"
            raise UsageError(message)
        ops = report = kernels = None
        if Input.OPS in files:
            ops = self._ops(files[Input.OPS], options)
        if Input.REPORT in files:
            report = report_of(files[Input.REPORT])
        if Input.KERNELS in files:
            kernels = kernels_in(files[Input.KERNELS])
        return Subject(ops=ops, report=report, kernels=kernels)

    def _ops(self, file: Path, options: argparse.Namespace) -> OpTable:
        try:
            return op_table_of(file, start=options.start, end=options.end, region=options.region)
        except UsageError as error:
            if not self.heading or file.name in str(error):
                raise
            message = f"{file}: {error}"  # one of several
            raise UsageError(message) from error


def captures_of(options: argparse.Namespace, words: Sequence[str]) -> tuple[Capture, ...]:
    """Return the captures that options and words name; nothing but their beginnings is read yet.

    Raises:
        InputError: a file or folder is not there, or holds nothing that can be looked at.
        UsageError: nothing is named, or it is not clear which files belong together.
    """
    arguments = [tuple(_sources_at(Path(word))) for word in words]
    named = tuple(_named_by_options(options))
    arguments += [named] if named else []
    if not arguments:
        message = "nothing to look at: name a file, such as an ops_perf_results CSV"
        raise UsageError(message)
    groups = _grouped(arguments)
    as_named = len(groups) == 1 and (groups[0] == named or _is_one_file(groups[0]))
    return tuple(Capture(group, () if as_named else _heading(group)) for group in groups)


def _is_one_file(group: tuple[Source, ...]) -> bool:
    return len(group) == 1 and not group[0].searched


def _heading(group: tuple[Source, ...]) -> tuple[str, ...]:
    return tuple(f"{source.file}: {source.told}" for source in group)


def _named_by_options(options: argparse.Namespace) -> Iterator[Source]:
    named = {Input.OPS: options.csv, Input.REPORT: options.db, Input.KERNELS: options.log}
    for kind, file in named.items():
        if file is not None:
            yield Source(file, kind, kind.value)


def _grouped(arguments: Sequence[tuple[Source, ...]]) -> list[tuple[Source, ...]]:
    """Return which files belong together."""
    inputs = [frozenset(source.input for source in argument) for argument in arguments]
    every = list(chain.from_iterable(arguments))
    if len({source.input for source in every}) == len(every):
        return [tuple(every)]
    if len(set(inputs)) == 1:
        return list(arguments)
    found = ", ".join(f"{source.file} is {source.input.value}" for source in every)
    message = (
        f"cannot tell which files belong together: {found}; name one of each kind, to look at "
        "them together, or several of one kind, to look at them one by one"
    )
    raise UsageError(message)


def _sources_at(place: Path) -> Iterator[Source]:
    """Yield what a file holds, or what a folder holds that can be looked at."""
    if place.is_dir():
        yield from _sources_in(place)
        return
    kind = kind_of(place)
    if kind not in _INPUTS:
        problem = (
            "expected an op table, a report database or graph capture, or output of tt-lang, found "
            f"{kind.value}; to see what it holds: ttnn-perf show {shlex.quote(str(place))}"
        )
        raise InputError(place, problem)
    yield Source(place, _INPUTS[kind], kind.value)


#: Op tables in the folder of a profiler, the better kind first.
_TABLES: Final = ("ops_perf_results*.csv", "cpp_device_perf_report*.csv")
#: How the profiler writes times into names.
_STAMP, _STAMP_FORMAT = re.compile(r"\d{4}(?:_\d\d){5}"), "%Y_%m_%d_%H_%M_%S"


#: Below the folder of a profiler there are some hundred folders, below a checkout far more.
_MOST_FOLDERS: Final = 10_000


def _sources_in(folder: Path) -> Iterator[Source]:
    below, unread = _tables_below(folder)
    tables = next(filter(None, ([f for f in below if _is_like(f, name)] for name in _TABLES)), [])
    closed = f", not looked into: {', '.join(unread)}" if unread else ""
    if tables:
        newest = max(tables, key=_written)
        several = f", the newest of {len(tables)} in {folder}" if len(tables) > 1 else ""
        for found in _sources_at(newest):
            yield replace(found, told=found.told + several + closed, searched=True)
    database = folder / DATABASE
    if database.is_file():
        yield Source(database, Input.REPORT, ArtifactKind.REPORT_DB.value, searched=True)
    elif not tables:
        raise InputError(
            folder,
            f"expected a folder with {DATABASE} of ttnn, or with an ops_perf_results CSV of the "
            f"profiler, found neither{closed}; name other files themselves",
        )


def _tables_below(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the op tables in a folder and below it, and the folders that could not be listed.

    Hidden folders and links to folders are left out.

    Raises:
        InputError: there is so much below it that it cannot be meant.
    """
    found: list[Path] = []
    unread: list[str] = []
    walk = os.walk(folder, onerror=lambda error: unread.append(str(error.filename)))
    for count, (parent, folders, names) in enumerate(walk):
        if count == _MOST_FOLDERS:
            problem = f"more than {_MOST_FOLDERS} folders are below it"
            raise InputError(folder, f"{problem}: name that of the capture itself")
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files = (Path(parent, name) for name in names)
        found += (f for f in files if any(_is_like(f, name) for name in _TABLES) and f.is_file())
    return found, sorted(unread)


def _is_like(file: Path, name: str) -> bool:
    return fnmatch(file.name.removesuffix(".gz"), name)


def _written(file: Path) -> tuple[str, str]:
    """Return when a table was written: copies keep the name, and not the time of the file."""
    stamp = _STAMP.search(file.name)
    written = time.strftime(_STAMP_FORMAT, time.localtime(file.stat().st_mtime))
    return stamp[0] if stamp else written, str(file)


def look_at(
    captures: Sequence[Capture], look: Callable[[Capture], T]
) -> tuple[list[tuple[Capture, T]], list[InputError]]:
    """Return what is found in each capture, and of those that cannot be read, why."""
    tried = [(capture, _tried(look, capture)) for capture in captures]
    found = [(capture, seen) for capture, seen in tried if not isinstance(seen, InputError)]
    return found, [error for _, error in tried if isinstance(error, InputError)]


def _tried(look: Callable[[Capture], T], capture: Capture) -> T | InputError:
    try:
        return look(capture)
    except InputError as error:
        return error


def complaining(result: Result, errors: Sequence[InputError]) -> Result:
    """Return a result after which the command ends with what could not be read."""
    if not errors:
        return result
    *others, last = errors

    def complain() -> Result:
        raise last

    lines = "".join(f"ttnn-perf: {error}\n" for error in others)
    return replace(result, errors=lines, then=complain)


def joined(found: Sequence[tuple[Capture, Listing]], *, several: bool) -> Listing:
    """Lay out what is said of each capture, one below the other.

    In JSON each of ``several`` is one of ``captures``, and CSV has the column ``file`` in front.
    """
    lines: list[Block] = []
    for capture, listing in found:
        lines += [""] if lines else []
        lines += [*capture.heading, *listing.lines]
    documents = [_with_files(listing.document, capture) for capture, listing in found]
    _, first = found[0]
    if not several:
        return Listing(tuple(lines), documents[0], first.headings, first.rows)
    rows = tuple((capture.name, *row) for capture, listing in found for row in listing.rows)
    return Listing(tuple(lines), {"captures": documents}, ("file", *first.headings), rows)


def _with_files(document: object, capture: Capture) -> dict[str, object]:
    assert isinstance(document, dict)
    return {**document, "files": list(capture.files)}
