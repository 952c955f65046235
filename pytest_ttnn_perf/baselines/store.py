"""Reading baselines, and changing them so that nothing is lost between concurrent runs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import remove_file, write_text
from pytest_ttnn_perf._support.errors import InputError, WriteError
from pytest_ttnn_perf._support.json_text import read_json
from pytest_ttnn_perf.baselines.ops_file import LARGEST, ops_text, read_ops_file, replaced, strange
from pytest_ttnn_perf.baselines.paths import (
    baseline_path,
    key_folder,
    ops_path,
    relative_path,
    split_test_id,
    test_file_of,
)
from pytest_ttnn_perf.baselines.schema import decode_file, encode_text
from pytest_ttnn_perf.model.baseline import BaselineFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import TypeAlias

    from pytest_ttnn_perf.model.baseline import TestBaseline
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.op_groups import OpGroups

    #: What becomes of a test's baseline; None is a test that has none, before or after.
    Change: TypeAlias = Callable[[TestBaseline | None], TestBaseline | None]

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
            for path in sorted(folder.rglob("*.json")):
                content = self._file(path) or self._checked(path)
                place = PurePosixPath(path.relative_to(folder).as_posix())
                yield StoredFile(path, content.test_file or test_file_of(place), content)

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
        told = test_file_of(relative_path(test_file))
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
        merged = replace(current, tests=tests, test_file=test_file if told is None else None)
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
