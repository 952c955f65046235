"""Arguments that commands share, and the captures that a command line names.

Files of different kinds belong to one program, and are read together.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

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
from pytest_ttnn_perf.analysis.rules.kernels import production_tiles, target_cores
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import Input, Subject
from pytest_ttnn_perf.core.hardware import (
    ARCHITECTURES,
    UNKNOWN,
    Hardware,
    system_of,
)
from pytest_ttnn_perf.core.observation import lies_in
from pytest_ttnn_perf.core.text import counted, did_you_mean
from pytest_ttnn_perf.report.tables import Listing, Result, printed, stdout_style

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings


def add_argument(
    parser: argparse._ActionsContainer, names: str, text: str, **settings: Any
) -> None:
    """Add an argument, named as in help: ``"-o --output PATH"``.

    An option without a value and without settings is a flag.
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")] or words[:1]
    if len(words) > len(flags):
        settings["metavar"] = " ".join(words[len(flags) :])
    elif not settings:
        settings["action"] = "store_true"
    parser.add_argument(*flags, help=text, **settings)


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    choices = ("table", "json", "csv", *more)
    add_argument(parser, "--format", "output format (default: table)",
        choices=choices, default="table")  # fmt: skip


def add_window(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("--region NAME", "only this region, such as decode")
    add("--start SIGNPOST", "only ops after this signpost")
    add("--end SIGNPOST", "only ops before this signpost (default: NAME_END)")


def add_chip(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add(
        "--arch NAME",
        "the chip, where a capture does not name it",
        choices=("wormhole_b0", "blackhole"),
    )
    add("--board NAME", "the board, such as p100: no capture names it")


def on_chip(table: OpTable, options: argparse.Namespace, file: Path) -> OpTable:
    """Return a table with the chip and the board that options name.

    Raises:
        UsageError: no such board, or the capture is of another chip.
    """
    arch, board = options.arch, options.board
    if board is not None:
        system = system_of(board)
        if system is None:
            raise UsageError(
                f"--board: expected a board such as n150, p100 or p150, found {board!r}"
            )
        named, board = system[0], board.lower()
        if arch not in {None, named}:
            raise UsageError(f"--board {board} is a board of {named}, and --arch is {arch}")
        arch = named
    if arch is not None and table.arch is not None and table.arch != arch:
        raise UsageError(f"{file.name} is of {table.arch}: --arch and --board name {arch}")
    return replace(table, arch=arch or table.arch, board=board)


def add_baselines(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "--baselines DIR", "folder of the baselines (default: baselines)",
        type=Path)  # fmt: skip


def add_captures(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("--csv FILE", "an ops_perf_results CSV", type=Path)
    add("--db FILE", "a report database, db.sqlite, or its folder", type=Path)
    add("--log FILE", "output of tt-lang, or of its simulator", type=Path)
    add("--fact NAME=VALUE", "a fact, such as production_shape=8192x8192", action="append",
        type=fact, default=[])  # fmt: skip
    add_window(parser)
    add_chip(parser)


def fact(text: str) -> tuple[str, str]:
    """Read a fact that is stated as NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        message = f"expected a fact such as target=n150, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    stated = {name.strip(): value.strip()}
    wanted = {"target": (target_cores, "a board such as n150"),
              "production_shape": (production_tiles, "a shape such as 8192x8192")}  # fmt: skip
    for known, (read, example) in wanted.items():
        if known in stated and read(stated) is None:
            message = f"{known}: expected {example}, found {stated[known]!r}"
            raise argparse.ArgumentTypeError(message)
    return name.strip(), value.strip()


def number_within(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            message = f"expected a whole number from {least} to {most}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return read


def from_here(path: Path) -> Path:
    """Return a path below the current folder as seen from there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def newest_record(settings: Settings) -> Path | None:
    """Return the record of the last run; names begin with their time."""
    found = max((settings.artifacts / "runs").glob("*.json"), default=None)
    return None if found is None else from_here(found)


def presumed_kind_of(file: Path) -> ArtifactKind:
    """Return the format; unknown JSON counts as a run record."""
    try:
        return kind_of(file)
    except InputError:
        if Path(file.name.removesuffix(".gz")).suffix in {".json", ".jsonl"}:
            return ArtifactKind.RUN_RECORD  # its reader says more
        raise


def select_tests(
    tests: Collection[str], selectors: Sequence[str], ids: Sequence[str] = (), *, where: str
) -> tuple[str, ...]:
    """Select tests by words or ``ids``, in their order; all without any.

    What looks like a pattern or a folder is none among ``ids``.

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
    # Half a surrogate pair comes as bytes.
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
    return tuple(difflib.get_close_matches(name, names, n=3, cutoff=0.5))


class Source(NamedTuple):
    """A file of a capture; ``searched``: it was found in a folder."""

    file: Path
    input: Input
    label: str
    searched: bool = False


class Capture(NamedTuple):
    """Files of one program, at most one of each kind."""

    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        return " + ".join(self.files)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(str(source.file) for source in self.sources)

    def read(self, options: argparse.Namespace) -> Subject:
        """Read all files; of an op table, the window that options choose."""
        files = {source.input: source.file for source in self.sources}
        window = {"start": options.start, "end": options.end, "region": options.region}
        if Input.OPS not in files and any(window.values()):
            message = f"--region, --start and --end select ops of an op table; {self.name} has none"
            raise UsageError(message)
        ops = None
        if Input.OPS in files:
            ops = on_chip(op_table_of(files[Input.OPS], **window), options, files[Input.OPS])
        return Subject(
            ops=ops,
            report=report_of(files[Input.REPORT]) if Input.REPORT in files else None,
            kernels=kernels_in(files[Input.KERNELS]) if Input.KERNELS in files else None,
            facts=dict(options.fact),
        )

    def listed(self, listing: Listing) -> Listing:
        """Add what was found in a folder, and the files."""
        found = (f"{source.file}: {source.label}" for source in self.sources if source.searched)
        assert isinstance(listing.document, dict)
        document = {**listing.document, "files": list(self.files)}
        return replace(listing, lines=(*found, *listing.lines), document=document)


def capture_of(options: argparse.Namespace, words: Sequence[str]) -> Capture:
    """Return the capture that options and words name, without reading it.

    Raises:
        InputError: a file or folder is not there, or holds nothing that can be looked at.
        UsageError: nothing is named, or several files of one kind.
    """
    sources = [source for word in words for source in _sources_at(Path(word))]
    named = {Input.OPS: options.csv, Input.REPORT: options.db, Input.KERNELS: options.log}
    sources += [Source(file, kind, kind.value) for kind, file in named.items() if file]
    if not sources:
        raise UsageError("nothing to look at: name a file, such as an ops_perf_results CSV")
    if len({source.input for source in sources}) < len(sources):
        found = ", ".join(f"{source.file} is {source.input.value}" for source in sources)
        raise UsageError(
            f"expected the files of one program, at most one of each kind: {found}; look at them "
            "one by one"
        )
    return Capture(tuple(sources))


_INPUTS: Final = {
    **dict.fromkeys(OP_TABLES, Input.OPS),
    ArtifactKind.REPORT_DB: Input.REPORT,
    ArtifactKind.TTLANG_LOG: Input.KERNELS,
    ArtifactKind.PERF_SUMMARY_JSON: Input.KERNELS,
    ArtifactKind.SIM_TRACE: Input.KERNELS,
}


def _sources_at(place: Path) -> list[Source]:
    if place.is_dir():
        return _sources_in(place)
    kind = kind_of(place)
    if kind not in _INPUTS:
        problem = (
            "expected an op table, a report database, or output of tt-lang, found "
            f"{kind.value}; to see what it holds: ttnn-perf show {shlex.quote(str(place))}"
        )
        raise InputError(place, problem)
    return [Source(place, _INPUTS[kind], kind.value)]


def capture_file(place: Path) -> Path:
    """Return a file, or the best capture in a folder."""
    return _sources_in(place)[0].file if place.is_dir() else place


#: Op tables in the folder of a profiler, the better kind first.
_TABLES: Final = ("ops_perf_results*.csv", "cpp_device_perf_report*.csv")
#: How the profiler writes times into names.
_STAMP, _STAMP_FORMAT = re.compile(r"\d{4}(?:_\d\d){5}"), "%Y_%m_%d_%H_%M_%S"


def _sources_in(folder: Path) -> list[Source]:
    """Find the newest op table and the report database of a folder."""
    found: list[Source] = []
    tables = _tables_below(folder)
    if tables:
        (table,) = _sources_at(max(tables, key=_written))
        several = f", the newest of {len(tables)} in {folder}" if len(tables) > 1 else ""
        found.append(table._replace(label=table.label + several, searched=True))
    database = folder / DATABASE
    if database.is_file():
        found.append(Source(database, Input.REPORT, ArtifactKind.REPORT_DB.value, searched=True))
    if not found:
        raise InputError(
            folder,
            f"expected a folder with {DATABASE} of ttnn, or with an ops_perf_results CSV of the "
            f"profiler, found neither; name other files themselves",
        )
    return found


def _tables_below(folder: Path) -> list[Path]:
    """Return op tables of the better kind, not through links."""
    for pattern in _TABLES:
        files = (*folder.rglob(pattern), *folder.rglob(f"{pattern}.gz"))
        if found := [file for file in files if file.is_file()]:
            return found
    return []


def _written(file: Path) -> tuple[str, str]:
    # Copies keep the name, and not the time of the file.
    stamp = _STAMP.search(file.name)
    written = time.strftime(_STAMP_FORMAT, time.localtime(file.stat().st_mtime))
    return stamp[0] if stamp else written, str(file)


def plain(lines: Iterable[str], *, failed: bool = False) -> Result:
    """Print lines that have no other format."""
    return Result("".join(f"{line}\n" for line in printed(lines, stdout_style())), failed=failed)


def typed_hardware(key: str) -> Hardware:
    """Return the hardware of a key that a user typed."""
    hardware = Hardware.from_key(key)
    if hardware is None:
        message = f"expected a hardware key such as wormhole_b0-n150-1x1, found {key!r}"
        raise UsageError(message)
    if hardware.arch not in {*ARCHITECTURES, "host", UNKNOWN}:
        meant = did_you_mean(hardware.arch, ARCHITECTURES)
        expected = f"expected one of {', '.join(ARCHITECTURES)}"
        message = f"{key}: {expected} as architecture, found {hardware.arch!r}{meant}"
        raise UsageError(message)
    known = system_of(hardware.board)
    if known is not None and hardware.arch not in {known[0], UNKNOWN}:
        message = f"{key}: {hardware.board} is a board of {known[0]}"
        raise UsageError(message)
    return hardware
