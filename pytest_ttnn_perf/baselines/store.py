"""Reading baselines, and changing them so that nothing is lost between concurrent runs."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import stat
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, InputError, WriteError
from pytest_ttnn_perf._base.files import read_json, reading, remove_file, write_text
from pytest_ttnn_perf.records.baseline import (
    BaselineFile,
    baseline_path,
    decode_file,
    encode_text,
    key_folder,
    ops_path,
    relative_path,
    split_test_id,
    test_file_of,
)
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.ops import (
    COLUMNS,
    REGION,
    OpGroups,
    columns_of,
    decode_group,
    group_cells,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from pytest_ttnn_perf.records.baseline import TestBaseline
    from pytest_ttnn_perf.records.hardware import Hardware

    #: What becomes of a test's baseline; None is a test that has none, before or after.
    Change: TypeAlias = Callable[[TestBaseline | None], TestBaseline | None]


#: The last column names the profiler's column that the times are from; it is the same in all rows.
_TIME: Final = "time"
_TEXTS: Final = frozenset({"op", "inputs", "outputs", "settings", REGION})
_WHOLE: Final = frozenset({"cores", "count"})
#: Far more than any model has kinds of ops: a line for each.
LARGEST: Final = 64 * 2**20
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def strange(file: Path, folder: Path) -> str | None:
    """Say what is in the place of a table if that is no file of a size in ``folder``.

    Baselines may be someone else's: a link in them leads anywhere, and whoever opens a pipe waits.
    None where there is a file, or nothing. Nothing is opened.
    """
    real = os.path.realpath(file)
    if not Path(real).is_relative_to(os.path.realpath(folder)):
        return f"a link that leads out of it, to {real}"
    try:
        state = file.stat()
    except OSError as cause:
        nowhere = cause.errno == errno.ELOOP or file.is_symlink()
        return "a link that leads nowhere" if nowhere else None
    return _no_table(state)


def _no_table(state: os.stat_result) -> str | None:
    if not stat.S_ISREG(state.st_mode):
        return next((name for is_one, name in _KINDS if is_one(state.st_mode)), "a device")
    return f"{state.st_size} bytes" if state.st_size > LARGEST else None


def ops_text(ops: OpGroups) -> str:
    """Lay groups out, a line for each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = columns_of(ops)
    writer.writerow((*columns, _TIME))
    for group in ops.groups:
        cells = group_cells(group)[: len(columns)]
        writer.writerow([*map(_shortest, cells), ops.kernel_time])
    return text.getvalue()


def read_ops_file(file: Path) -> OpGroups:
    """Read the groups beside a baseline.

    Raises:
        InputError: with file, line and what was expected.
    """
    reader = csv.reader(io.StringIO(_text(file)), strict=True)
    groups, kernel_time = [], ""
    try:
        *columns, last = next(reader, None) or [""]
        if last != _TIME or tuple(columns) not in {COLUMNS, (*COLUMNS, REGION)}:
            raise InputError(file, f"expected the columns {','.join((*COLUMNS, _TIME))}", line=1)
        for row in reader:
            if len(row) != len(columns) + 1:
                problem = f"expected {len(columns) + 1} cells, found {len(row)}"
                raise InputError(file, problem, line=reader.line_num)
            *cells, kernel_time = row
            groups.append(decode_group(Value(list(map(_parsed, columns, cells)))))
    except csv.Error as cause:
        raise InputError(file, str(cause), line=reader.line_num) from cause
    except DecodeError as cause:
        column = (*COLUMNS, REGION)[int(cause.path[0])]
        problem = f"{column}: expected {cause.expected}, found {cause.found}"
        raise InputError(file, problem, line=reader.line_num) from cause
    return OpGroups(kernel_time, tuple(groups))


def _text(file: Path) -> str:
    """Read a file that may have become something else since it was looked at."""

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # of a pipe, otherwise, for who writes to it

    with reading(file), open(file, encoding="utf-8", opener=without_waiting) as stream:
        found = _no_table(os.fstat(stream.fileno()))
        if found is not None:
            raise InputError(file, f"expected a file, found {found}")
        return stream.read()


@contextlib.contextmanager
def replaced(texts: Mapping[Path, str]) -> Iterator[None]:
    """Write files that belong to one which is written inside; if that fails, they are as before.

    Raises:
        WriteError: a file cannot be written.
    """
    before = {  # what is damaged may stay so, and must not keep a good one from being written
        file: file.read_text(encoding="utf-8", errors="replace") for file in texts if file.exists()
    }
    try:
        for file, text in texts.items():
            write_text(file, text)
        yield
    except WriteError:
        with contextlib.suppress(OSError, WriteError):
            for file in texts:
                if file in before:
                    write_text(file, before[file])
                else:
                    file.unlink(missing_ok=True)
        raise


def _shortest(cell: str | float | None) -> str | float | None:
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _parsed(column: str, cell: str) -> str | float | None:
    """Return a cell as JSON would have it; what is no number stays the text that it is."""
    if column in _TEXTS:
        return cell
    if not cell:
        return None
    if column == "fidelity":
        return cell
    with contextlib.suppress(ValueError):
        return int(cell) if column in _WHOLE or cell.isdecimal() else float(cell)
    return cell


#: How long a run waits for another one that is writing baselines: a write takes milliseconds.
LOCK_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A baseline file as found on disk; ``test_file`` is None where nothing tells it."""

    path: Path
    test_file: str | None
    content: BaselineFile


@dataclass(slots=True)
class BaselineStore:
    """The baselines under one folder. Files are read once; writing reads them again."""

    root: Path
    _read: dict[Path, BaselineFile | None] = field(default_factory=dict)
    _found: dict[tuple[Hardware, str], BaselineFile | None] = field(default_factory=dict)

    def find(self, hardware: Hardware, test: str) -> TestBaseline | None:
        """Return the baseline of ``test`` on ``hardware``."""
        test_file, name = split_test_id(test)
        if (hardware, test_file) not in self._found:
            path = baseline_path(self.root, hardware, test_file)
            self._found[hardware, test_file] = self._file(path)
        file = self._found[hardware, test_file]
        return file.tests.get(name) if file else None

    def neighbours(self, hardware: Hardware) -> Iterator[TestBaseline]:
        """Yield every baseline on ``hardware`` that can be read.

        All of them and not those of a run's tests: what they teach must not depend on which tests
        were selected. A broken file of another test is that test's trouble.
        """
        for path in sorted(key_folder(self.root, hardware).rglob("*.json")):
            with contextlib.suppress(InputError):
                file = self._file(path)
                yield from file.tests.values() if file else ()

    def ops_of(self, hardware: Hardware, test: str) -> OpGroups | None:
        """Return the op table beside a test's baseline; None if there is none.

        Raises:
            InputError: the file is missing, unreadable or malformed, or is none of the folder.
        """
        baseline = self.find(hardware, test)
        if baseline is None or baseline.ops is None:
            return None
        folder = key_folder(self.root, hardware)
        file = folder / baseline.ops
        found = strange(file, folder)
        if found is not None:
            test_file, name = split_test_id(test)
            expected = f"expected a file of at most {LARGEST} bytes in {folder}"
            problem = f"['tests'][{name!r}]['ops']: {expected}, found {found}"
            raise InputError(baseline_path(self.root, hardware, test_file), problem)
        return read_ops_file(file)

    def keys_with(self, test: str) -> tuple[str, ...]:
        """Name the hardware keys that have a baseline of ``test``."""
        test_file, name = split_test_id(test)
        found = (self._file(folder / relative_path(test_file)) for folder in self._key_folders())
        return tuple(sorted(file.hardware.key for file in found if file and name in file.tests))

    def names_in(self, hardware: Hardware, test_file: str) -> frozenset[str]:
        """Return the tests of a file that are stored, by their names within it."""
        file = self._file(baseline_path(self.root, hardware, test_file))
        return frozenset(file.tests) if file else frozenset()

    def preload(self, tests: Iterable[str]) -> None:
        """Read what the judging of ``tests`` may need, so that a broken file shows before they run.

        Raises:
            InputError: a file is malformed or unreadable.
        """
        places = {relative_path(split_test_id(test)[0]) for test in tests}
        for folder in self._key_folders():
            for place in places:
                self._file(folder / place)

    def all_files(self, of: Collection[Hardware] | None = None) -> Iterator[StoredFile]:
        """Read every baseline file, of some hardware only if said so, in the order of paths."""
        if not self.root.is_dir():
            raise InputError(self.root, "expected a folder of baselines, found nothing")
        wanted = None if of is None else {key_folder(self.root, hardware) for hardware in of}
        for folder in self._key_folders():
            if wanted is not None and folder not in wanted:
                continue
            yield from map(self.read, sorted(folder.rglob("*.json")))

    def read(self, path: Path) -> StoredFile:
        """Read one baseline file.

        Raises:
            InputError: it is malformed, unreadable, or in the folder of other hardware.
        """
        content = self._file(path) or self._checked(path)
        place = PurePosixPath(*path.relative_to(self.root).parts[1:])
        return StoredFile(path, content.test_file or test_file_of(place), content)

    def amend(self, hardware: Hardware, changes: Mapping[str, Change]) -> tuple[Path, ...]:
        """Change the baselines of some tests; all other tests keep theirs.

        Each change is applied to what is stored at that moment, under the lock: of two runs that
        add a session at once, neither loses its own.

        Raises:
            WriteError: nothing of the file that failed was changed.
            InputError: a file that is to be changed became unreadable.
        """
        with self.locked():
            return self.apply(hardware, changes)

    def apply(self, hardware: Hardware, changes: Mapping[str, Change]) -> tuple[Path, ...]:
        """Do what ``amend`` does, for who holds the lock already."""
        by_file: dict[str, dict[str, Change]] = {}
        for test, change in changes.items():
            test_file, name = split_test_id(test)
            by_file.setdefault(test_file, {})[name] = change
        return tuple(self._amend_file(hardware, f, by_file[f]) for f in sorted(by_file))

    def _amend_file(self, hardware: Hardware, test_file: str, changes: dict[str, Change]) -> Path:
        path = baseline_path(self.root, hardware, test_file)
        # Not what was read at the start: another run may have written since.
        self._read.pop(path, None)
        current = self._file(path) or BaselineFile(hardware)
        known = test_file_of(relative_path(test_file))
        tests = dict(current.tests)
        tables: dict[Path, str] = {}
        gone: list[Path] = []
        for name, change in changes.items():
            test = change(tests.pop(name, None))
            place = ops_path(f"{test_file}::{name}")
            table = key_folder(self.root, hardware) / place
            if test is None:
                self._check_place(hardware, table, doing="remove")
                gone.append(table)
                continue
            if test.op_table is not None:
                self._check_place(hardware, table, doing="write")
                tables[table] = ops_text(test.op_table)
                test = replace(test, ops=str(place), op_table=None)
            tests[name] = test
        merged = replace(current, tests=tests, test_file=test_file if known is None else None)
        if tests:
            with replaced(tables):
                write_text(path, encode_text(merged))
            gone += sorted(path.parent.glob(f".{path.name[:40]}.*.new"))
        else:
            gone.insert(0, path)
        # Only now: a table without a baseline harms nobody, a baseline that lost its table does.
        for file in gone:
            remove_file(file, up_to=self.root)
        self._read[path] = self._found[hardware, test_file] = merged if tests else None
        return path

    def _check_place(self, hardware: Hardware, table: Path, *, doing: str) -> None:
        """Refuse to change a table through a link that leads out of the folder of its key."""
        folder = key_folder(self.root, hardware)
        found = strange(table, folder)
        if found is not None:
            problem = OSError(f"expected a file in {folder}, found {found}")
            raise WriteError(table, problem, doing=doing)

    def _file(self, path: Path) -> BaselineFile | None:
        if path not in self._read:
            self._read[path] = self._checked(path) if path.exists() else None
        return self._read[path]

    def _checked(self, path: Path) -> BaselineFile:
        """Read a file and refuse one that was copied from the folder of another key."""
        file = read_json(path, decode_file)
        folder = self.root / path.relative_to(self.root).parts[0]
        if folder != key_folder(self.root, file.hardware):
            problem = f"it is for {file.hardware.key} and lies in the folder {folder.name}"
            raise InputError(path, problem)
        return file

    def _key_folders(self) -> list[Path]:
        if not self.root.is_dir():
            return []
        return sorted(entry for entry in self.root.iterdir() if entry.is_dir())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock. The lock file stays: unlinking a held lock splits its waiters."""
        from filelock import FileLock, Timeout

        ignore = self.root / ".gitignore"
        if not ignore.exists():
            write_text(ignore, "/.lock\n/.gitignore\n")
        lock = self.root / ".lock"
        try:
            with FileLock(lock, timeout=LOCK_TIMEOUT_S):
                yield
        except Timeout as cause:
            reason = f"another run has held {lock} for {LOCK_TIMEOUT_S:.0f} s"
            raise WriteError(self.root, OSError(reason)) from cause
        except OSError as cause:
            raise WriteError(lock, cause) from cause
