"""The store of baselines: read once, changed in transactions under a lock."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import (
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
from pytest_ttnn_perf.core.codec import Value, decode_format
from pytest_ttnn_perf.core.errors import DecodeError, InputError, WriteError
from pytest_ttnn_perf.core.files import (
    LARGEST_TEXT_BYTES,
    encoded,
    leads_out,
    no_file_at,
    read_json,
    read_text,
    remove_empty,
    remove_file,
    remove_unfinished,
    write_bytes,
    write_text,
)
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.machine.git import is_tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from pytest_ttnn_perf.core.baseline import TestBaseline
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.ops import OpGroups

    #: Returns the new baseline of a test; None is a test without one, before or after.
    Change: TypeAlias = Callable[[TestBaseline | None], TestBaseline | None]


#: The last column names the profiler's column that the times are from; it is the same in all rows.
_TIME: Final = "time"
_TEXTS: Final = frozenset({"op", "inputs", "outputs", "settings", "region"})
_WHOLE: Final = frozenset({"cores", "count"})


def ops_text(ops: OpGroups) -> str:
    """Return op groups as CSV, a line for each."""
    from pytest_ttnn_perf.core.ops import columns_of, group_cells

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = columns_of(ops)
    writer.writerow((*columns, _TIME))
    for group in ops.groups:
        cells = (
            int(cell) if isinstance(cell, float) and cell.is_integer() else cell
            for cell in group_cells(group)[: len(columns)]
        )
        writer.writerow([*cells, ops.kernel_time])
    return text.getvalue()


def read_ops_file(file: Path) -> OpGroups:
    """Read the op groups of a baseline.

    Raises:
        InputError: it is not such a table.
    """
    from pytest_ttnn_perf.core.ops import COLUMNS, REGION, OpGroups, decode_group

    reader = csv.reader(io.StringIO(read_text(file, most_bytes=LARGEST_TEXT_BYTES)), strict=True)
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


def _parsed(column: str, cell: str) -> str | float | None:
    if column in _TEXTS:
        return cell
    if not cell or column == "fidelity":
        return cell or None
    with contextlib.suppress(ValueError):
        return int(cell) if column in _WHOLE or cell.isdecimal() else float(cell)
    return cell


#: How long a run waits for another one that is writing baselines: a write takes milliseconds.
LOCK_TIMEOUT_S: Final = 60.0
#: The former content of files that are being changed, see ``transaction``.
UNDO: Final = ".undo.json"
#: The files that git ignores in the folder of baselines.
_IGNORED: Final = "/.lock\n/.gitignore\n/.undo.json\n.*.ttnn_perf.new\n"


class StoredFile(Struct, frozen=True):
    """A baseline file, and the test file that it is for."""

    path: Path
    test_file: str | None
    content: BaselineFile


class BaselineStore(Struct):
    """The baselines under one folder; writing reads files again."""

    root: Path
    _read: dict[Path, BaselineFile | None] = {}
    _found: dict[tuple[Hardware, str], BaselineFile | None] = {}
    _settled: bool = False

    def find(self, hardware: Hardware, test: str) -> TestBaseline | None:
        """Return the baseline of ``test`` on ``hardware``."""
        test_file = split_test_id(test)[0]
        if (hardware, test_file) not in self._found:
            path = baseline_path(self.root, hardware, test_file)
            self._found[hardware, test_file] = self._file(path)
        file = self._found[hardware, test_file]
        return file.tests.get(split_test_id(test)[1]) if file else None

    def neighbours(self, hardware: Hardware) -> Iterator[TestBaseline]:
        """Yield every baseline on ``hardware`` that can be read.

        All of them: the learned noise must not depend on which tests were selected. A broken file
        of another test is that test's trouble.
        """
        for path in sorted(key_folder(self.root, hardware).rglob("*.json")):
            with contextlib.suppress(InputError):
                file = self._file(path)
                yield from file.tests.values() if file else ()

    def ops_of(self, hardware: Hardware, test: str) -> OpGroups | None:
        """Return the op table of a test's baseline, if it has one.

        Raises:
            InputError: the file is missing, unreadable or malformed, or is none of the folder.
        """
        baseline = self.find(hardware, test)
        if baseline is None or baseline.ops is None:
            return None
        folder = key_folder(self.root, hardware)
        file = folder / baseline.ops
        found = no_file_at(file, within=folder)
        if found is not None:
            test_file, name = split_test_id(test)
            expected = f"expected a file of at most {LARGEST_TEXT_BYTES} bytes in {folder}"
            problem = f"['tests'][{name!r}]['ops']: {expected}, found {found}"
            raise InputError(baseline_path(self.root, hardware, test_file), problem)
        return read_ops_file(file)

    def keys_with(self, test: str) -> tuple[str, ...]:
        """Name the hardware keys that have a baseline of ``test``."""
        test_file, name = split_test_id(test)
        place = relative_path(test_file)
        found = (self._file(folder / place) for folder in self._key_folders())
        return tuple(sorted(file.hardware.key for file in found if file and name in file.tests))

    def names_in(self, hardware: Hardware, test_file: str) -> frozenset[str]:
        """Return the names of a file's stored tests."""
        file = self._file(baseline_path(self.root, hardware, test_file))
        return frozenset(file.tests) if file else frozenset()

    def preload(self, tests: Iterable[str]) -> None:
        """Read the baselines of ``tests``: a broken file shows before they run.

        Raises:
            InputError: a file is malformed or unreadable.
        """
        places = {relative_path(split_test_id(test)[0]) for test in tests}
        for folder in self._key_folders():
            for place in places:
                self._file(folder / place)

    def all_files(self, of: Collection[Hardware] | None = None) -> Iterator[StoredFile]:
        """Read every baseline file, or those of some hardware, sorted by path."""
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

    def amend_keys(self, changes: Mapping[Hardware, Mapping[str, Change]]) -> tuple[Path, ...]:
        """Change baselines of some tests: all of them, or none.

        Each change is applied to what is stored at that moment, under the lock: of two runs that
        add a session at once, neither loses its own.

        Raises:
            WriteError: nothing was changed.
            InputError: a file that is to be changed became unreadable; nothing was changed.
        """
        with self.locked():
            return self._amend_keys(changes)

    def _amend_keys(self, changes: Mapping[Hardware, Mapping[str, Change]]) -> tuple[Path, ...]:
        files: dict[tuple[Hardware, str], BaselineFile | None] = {}
        texts: dict[Path, str | None] = {}
        for hardware, tests in changes.items():
            by_file: dict[str, dict[str, Change]] = {}
            for test, change in tests.items():
                test_file, name = split_test_id(test)
                by_file.setdefault(test_file, {})[name] = change
            for test_file in sorted(by_file):
                changed = self._amended(hardware, test_file, by_file[test_file], texts)
                files[hardware, test_file] = changed
        change_files(self.root, texts)
        paths = []
        for (hardware, test_file), file in files.items():
            path = baseline_path(self.root, hardware, test_file)
            self._read[path] = self._found[hardware, test_file] = file
            paths.append(path)
        return tuple(paths)

    def _amended(
        self,
        hardware: Hardware,
        test_file: str,
        changes: Mapping[str, Change],
        texts: dict[Path, str | None],
    ) -> BaselineFile | None:
        """Return a changed file, adding its texts to ``texts``."""
        path = baseline_path(self.root, hardware, test_file)
        # Not what was read at the start: another run may have written since.
        self._read.pop(path, None)
        current = self._file(path) or BaselineFile(hardware)
        known = test_file_of(relative_path(test_file))
        tests = dict(current.tests)
        for name, change in changes.items():
            test = change(tests.pop(name, None))
            place = ops_path(f"{test_file}::{name}")
            table = key_folder(self.root, hardware) / place
            if test is None:
                self._check_place(hardware, table, doing="remove")
                texts[table] = None
                continue
            if test.op_table is not None:
                self._check_place(hardware, table, doing="write")
                texts[table] = ops_text(test.op_table)
                test = replace(test, ops=str(place), op_table=None)
            tests[name] = test
        merged = replace(current, tests=tests, test_file=test_file if known is None else None)
        texts[path] = encode_text(merged) if tests else None
        return merged if tests else None

    def _check_place(self, hardware: Hardware, table: Path, *, doing: str) -> None:
        # A link must not lead out of the folder of its key.
        folder = key_folder(self.root, hardware)
        found = no_file_at(table, within=folder)
        if found is not None:
            problem = OSError(f"expected a file in {folder}, found {found}")
            raise WriteError(table, problem, doing=doing)

    def _file(self, path: Path) -> BaselineFile | None:
        self._settle()
        if path not in self._read:
            out = leads_out(path, self.root)
            if out is not None:
                raise InputError(path, f"expected a file in {self.root}, found {out}")
            self._read[path] = self._checked(path) if os.path.lexists(path) else None
        return self._read[path]

    def _settle(self) -> None:
        """Undo, once, the changes of a command that was killed."""
        if self._settled:
            return
        self._settled = True
        undo = self.root / UNDO
        if undo.exists():
            try:
                with self.locked():
                    pass
            except WriteError as error:
                problem = "a command was killed while it changed baselines; undo it: "
                raise InputError(undo, f"{problem}{error}") from error

    def _checked(self, path: Path) -> BaselineFile:
        """Read a file; refuse one in the folder of another key."""
        file = read_json(path, decode_file, most_bytes=LARGEST_TEXT_BYTES)
        folder = self.root / path.relative_to(self.root).parts[0]
        if folder != key_folder(self.root, file.hardware):
            problem = f"it is for {file.hardware.key} and lies in the folder {folder.name}"
            raise InputError(path, problem)
        return file

    def _key_folders(self) -> list[Path]:
        self._settle()
        if not self.root.is_dir():
            return []
        return sorted(entry for entry in self.root.iterdir() if entry.is_dir())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, after undoing what a killed command had begun.

        The lock file stays: unlinking a held lock splits its waiters.
        """
        from filelock import FileLock, Timeout

        ignore, lock = self.root / ".gitignore", self.root / ".lock"
        if self.root.is_symlink() and not self.root.exists():
            raise WriteError(self.root, OSError("expected a folder, found a link to nothing"))
        for file in (ignore, lock, self.root / UNDO):  # whoever locks a file empties it
            found = "a link" if file.is_symlink() else no_file_at(file)
            if found is not None:
                raise WriteError(file, OSError(f"expected a file, found {found}"))
        if not ignore.exists():
            write_text(ignore, _IGNORED)
        try:
            with FileLock(lock, timeout=LOCK_TIMEOUT_S):
                if (self.root / UNDO).exists():
                    done = put_back(self.root)
                    # The user may have asked for something else altogether.
                    sys.stderr.write(f"ttnn-perf: {visible(done)}\n" if done else "")
                self._settled = True
                yield
        except Timeout as cause:
            reason = f"another run has held {lock} for {LOCK_TIMEOUT_S:.0f} s"
            raise WriteError(self.root, OSError(reason)) from cause
        except OSError as cause:
            raise WriteError(lock, cause) from cause


_FORMAT: Final = 1
_MOST_NAMED: Final = 3


def _read_place(value: Value) -> str:
    # No file but a baseline or an op table is ever put back.
    place = PurePosixPath(value.string())
    try:
        named = b"\0" not in os.fsencode(place)
    except UnicodeEncodeError:  # half a surrogate pair
        named = False
    inside = named and not place.is_absolute() and ".." not in place.parts
    if not inside or place.suffix not in {".json", ".csv"}:
        raise value.refusal("the path of a baseline or an op table")
    return str(place)


def _read_text(value: Value) -> str | None:
    if value.raw is None:
        return None
    try:
        _bytes(value.string())
    except UnicodeEncodeError:
        raise value.refusal("the text of a file") from None
    return value.string()


def change_files(root: Path, texts: Mapping[Path, str | None]) -> None:
    """Write files below ``root``, or remove them; the caller holds the lock.

    Raises:
        WriteError: a file refused; all are as they were.
    """
    changed = {}
    for file, text in texts.items():
        before, after = _content(file), None if text is None else encoded(text, file)
        if before != after:
            changed[file] = (before, after)
    if not changed:
        return
    # Bytes that are no UTF-8 are kept as surrogates; None stands for a file that does not exist.
    undo = [
        {
            "file": file.relative_to(root).as_posix(),
            "before": None if before is None else before.decode("utf-8", "surrogateescape"),
            "after": _digest(after),
        }
        for file, (before, after) in changed.items()
    ]
    journal = root / UNDO
    try:
        write_text(journal, json.dumps({"format": _FORMAT, "files": undo}) + "\n")
    except WriteError as error:  # of a file that the user knows
        raise WriteError(next(iter(changed)), error.cause) from error
    try:
        for file in sorted(changed, key=lambda file: _turn(file, changed[file][1])):
            _put(root, file, changed[file][1])
        remove_file(journal, up_to=root)
    except BaseException:  # also Ctrl-C
        with contextlib.suppress(WriteError, InputError):  # the next command tries again
            put_back(root)
        raise


def put_back(root: Path) -> str | None:
    """Undo an unfinished change; the caller holds the lock.

    If any file was changed since, say with git, all stay as they are.

    Raises:
        InputError: it is not known what the files held, or git tracks what says so: no command
            that was killed has left it.
        WriteError: a file cannot be put back.
    """
    journal = root / UNDO
    if not journal.exists():
        return None
    tracked = is_tracked(journal)
    if tracked is None:
        message = "git cannot tell whether it came with the checkout: see git status, or remove it"
        raise InputError(journal, message)
    if tracked:
        remedy = f"remove it with: {shlex.join(('git', 'rm', '-f', '--', str(journal)))}"
        raise InputError(
            journal, f"expected what a killed command left, found a file of git: {remedy}"
        )
    touched = [
        (root / place, _bytes(before), after)
        for place, before, after in read_json(journal, _read_changes)
    ]
    known = all(_digest(_content(file)) in {_digest(old), new} for file, old, new in touched)
    if known:
        for file, old, _ in touched:
            if _content(file) == old:
                continue
            if not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
                raise InputError(
                    journal, f"{file} leads out of {root}: look at both, and remove it"
                )
            _put(root, file, old)
    for folder in {file.parent for file, _, _ in touched}:
        remove_unfinished(folder)
        remove_empty(folder, up_to=root)
    remove_file(journal, up_to=root)
    files = ", ".join(str(file) for file, _, _ in touched[:_MOST_NAMED])
    files += f" and {len(touched) - _MOST_NAMED} more" if len(touched) > _MOST_NAMED else ""
    done = "put back" if known else "left as they are, as they have changed since"
    return f"a command was killed while it changed baselines; {done}: {files}"


def _read_changes(document: object) -> list[tuple[str, str | None, str | None]]:
    """Read places, former texts and digests of new contents."""
    value = Value(document)
    decode_format(value, current=_FORMAT, what="a list of changed files")
    return [
        (
            _read_place(each.field("file")),
            _read_text(each.field("before")),
            _read_text(each.field("after")),
        )
        for each in value.field("files").array()
    ]


def _put(root: Path, file: Path, content: bytes | None) -> None:
    if content is None:
        remove_file(file, up_to=root)
    else:
        write_bytes(file, content)


def _turn(file: Path, after: bytes | None) -> tuple[bool, bool]:
    # For concurrent readers: a baseline without its table misleads them.
    removed = after is None
    return removed, (file.suffix == ".json") is not removed


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError as cause:
        raise WriteError(file, cause, doing="read") from cause


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
