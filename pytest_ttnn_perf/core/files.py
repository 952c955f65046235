"""Atomic writing, and reading of regular files only.

What lies in a checkout may be someone else's: a link in it leads anywhere, whoever opens a pipe
waits for who writes to it, and a device has no end. All that we read is opened by ``open_file``.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import stat
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from pytest_ttnn_perf.core.errors import DecodeError, InputError, WriteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from _typeshed import WriteableBuffer


T = TypeVar("T")
#: Ends the name of a file until it is whole: .NAME.RANDOM and this.
_UNFINISHED: Final = ".ttnn_perf.new"


def write_text(file: Path, text: str) -> None:
    """Replace ``file`` by ``text`` in one step; see ``write_parts``."""
    write_bytes(file, encoded(text, file))


def encoded(text: str, file: Path) -> bytes:
    """Encode a text for ``file``; half a surrogate pair is a WriteError."""
    try:
        return text.encode()
    except UnicodeEncodeError as cause:
        problem = f"{cause.object[cause.start : cause.end]!r} cannot be written as UTF-8"
        raise WriteError(file, OSError(problem)) from cause


def write_bytes(file: Path, content: bytes) -> None:
    """Replace ``file`` by ``content`` in one step; see ``write_parts``."""
    write_parts(file, (content,))


def write_parts(file: Path, parts: Iterable[bytes]) -> None:
    """Replace ``file`` by the ``parts`` in one step.

    The new content reaches the disk before the name does: after a crash or a full disk the file
    holds its old content or all of the new one. Leftovers of killed writers are removed.

    Raises:
        WriteError: the folder or the disk refused; the old file is untouched.
    """
    try:
        target = Path(os.path.realpath(file))  # a link stays one
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.exists() and not target.is_file():  # a pipe or a device, such as /dev/stdout
            with target.open("wb") as stream:
                stream.writelines(parts)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = _unfinished(target)
    except OSError as cause:
        raise WriteError(file, cause) from cause
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
            # mkstemp makes private files; a baseline is shared like any source file.
            temporary.chmod(_mode_of(target))
            temporary.replace(target)  # before it is closed: then anyone may take it for left over
    except OSError as cause:
        raise WriteError(file, cause) from cause
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        remove_unfinished(target.parent)


def _unfinished(target: Path) -> tuple[int, Path]:
    import fcntl

    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:40]}.", suffix=_UNFINISHED
        )
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another writer saw it before it was held, and removed it


def remove_unfinished(folder: Path) -> None:
    """Remove leftovers of killed writers; a writer at work holds its file."""
    import fcntl

    for file in list(folder.glob(f".*{_UNFINISHED}")):
        with contextlib.suppress(OSError):
            handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
            finally:
                os.close(handle)


def remove_file(file: Path, *, up_to: Path) -> None:
    """Remove a file and the folders below ``up_to`` that this leaves empty.

    Raises:
        WriteError: the folder refused; the file is still there.
    """
    try:
        file.unlink(missing_ok=True)
    except NotADirectoryError:
        return
    except OSError as cause:
        raise WriteError(file, cause, doing="remove") from cause
    remove_empty(file.parent, up_to=up_to)


def remove_empty(folder: Path, *, up_to: Path) -> None:
    """Remove an empty folder, and those above it that this leaves empty."""
    while folder != up_to and up_to in folder.parents:
        with contextlib.suppress(OSError):
            folder.rmdir()  # refuses a folder that holds anything
        folder = folder.parent


def check_writable(folder: Path) -> None:
    """Raise WriteError unless a file could be made in ``folder``.

    Asks by making a nameless temporary file: permission bits say nothing on read-only mounts.
    """
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as cause:
        raise WriteError(folder, cause) from cause


def _mode_of(file: Path) -> int:
    with contextlib.suppress(OSError):
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def new_folder(folder: Path) -> Path:
    try:
        for _ in range(10):
            # Another run may have made, or discarded, the folder above since it was looked for.
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                folder.mkdir(parents=True)
                return folder
        folder.mkdir(parents=True)
    except OSError as cause:
        raise WriteError(folder, cause) from cause
    return folder


#: Far more than any baseline, table of ops or file of settings has.
LARGEST_TEXT_BYTES: Final = 64 * 2**20
#: Far more than the record of any run has: it is in memory as a whole.
LARGEST_RECORD_BYTES: Final = 512 * 2**20
#: More than the op table of a long run has, which is the largest of all captures.
LARGEST_CAPTURE_BYTES: Final = 4 * 2**30
_NO_FILES: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def open_file(file: Path, *, most_bytes: int = LARGEST_CAPTURE_BYTES) -> io.FileIO:
    """Open a regular file of limited size, and nothing else.

    Raises:
        InputError: it is something else, a link that leads nowhere, or larger.
        OSError: as ``open``.
    """
    found = no_file_at(file, most_bytes=most_bytes)
    if found is not None:
        size = f" of at most {most_bytes} bytes" if found.endswith(" bytes") else ""
        raise InputError(file, f"expected a file{size}, found {found}")
    return io.FileIO(file)


def no_file_at(
    file: Path, *, within: Path | None = None, most_bytes: int = LARGEST_TEXT_BYTES
) -> str | None:
    """Name what is not a regular file; None for one, or nothing.

    With ``within``, a link that leads out of that folder counts as none. Nothing is opened.
    """
    out = None if within is None else leads_out(file, within)
    if out is not None:
        return out
    try:
        state = file.stat()
    except OSError:
        return "a link that leads nowhere" if file.is_symlink() else None
    if not stat.S_ISREG(state.st_mode):
        return next((name for is_one, name in _NO_FILES if is_one(state.st_mode)), "a device")
    return f"{state.st_size} bytes" if state.st_size > most_bytes else None


def leads_out(file: Path, folder: Path) -> str | None:
    real = os.path.realpath(file)
    inside = Path(real).is_relative_to(os.path.realpath(folder))
    return None if inside else f"a link that leads out of it, to {real}"


def read_json(
    file: Path, decode: Callable[[object], T], *, most_bytes: int = LARGEST_RECORD_BYTES
) -> T:
    """Read ``file`` and decode it.

    Raises:
        InputError: unreadable, not JSON, or not what ``decode`` expects; with file and line.
    """
    return parse_json(read_text(file, most_bytes=most_bytes), decode, file=file)


def read_text(file: Path, *, most_bytes: int = LARGEST_RECORD_BYTES) -> str:
    """Read a UTF-8 file, packed or not; any failure is an InputError."""
    with reading(file), unpacked(file, most_bytes=most_bytes) as stream:
        # With line ends of this system.
        return stream.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turn failures to read a UTF-8 file into an InputError."""
    try:
        yield
    except UnicodeDecodeError as cause:
        raise InputError(file, f"not a text file: {cause.reason} at byte {cause.start}") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


_GZIP: Final = b"\x1f\x8b"


@contextlib.contextmanager
def unpacked(file: Path, *, most_bytes: int = LARGEST_CAPTURE_BYTES) -> Iterator[BinaryIO]:
    """Open a file, unpacked if it is gzip, whatever its name.

    Reading it raises InputError where a packed file is cut, damaged or unpacks to more; opening it
    what ``open_file`` raises.
    """
    with io.BufferedReader(open_file(file, most_bytes=most_bytes)) as plain:
        if plain.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
            yield plain
            return
        with io.BufferedReader(_UnpackedFile(file, plain, most_bytes)) as stream:
            yield stream


class _UnpackedFile(io.RawIOBase):
    """The content of a packed file, up to a number of bytes."""

    def __init__(self, file: Path, packed: BinaryIO, most_bytes: int) -> None:
        self._stream = gzip.GzipFile(fileobj=packed)
        self._file, self._most_bytes, self._bytes = file, most_bytes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            count = self._stream.readinto(buffer)
        except (EOFError, OSError, zlib.error) as cause:
            raise InputError(self._file, f"not a whole gzip file: {cause}") from cause
        self._bytes += count
        if self._bytes > self._most_bytes:
            most = f"{self._most_bytes:,} bytes"
            raise InputError(self._file, f"it unpacks to more than {most}: no capture does")
        return count


def parse_json(text: str, decode: Callable[[object], T], *, file: Path) -> T:
    try:
        document = loads(text)
    except json.JSONDecodeError as cause:
        problem = f"not valid JSON: {cause.msg}"
        if not text.strip():
            problem = "the file is empty"
        elif text.startswith("<<<<<<<", cause.doc.rfind("\n", 0, cause.pos) + 1):
            problem = "a merge conflict is not resolved here"
        raise InputError(file, problem, line=cause.lineno) from cause
    except ValueError as cause:
        raise InputError(file, f"not valid JSON: {cause}") from cause
    try:
        return decode(document)
    except DecodeError as cause:
        raise InputError(file, str(cause), line=line_of(text, cause.path)) from cause


def loads(text: str) -> object:
    """Parse JSON; any mistake in it is a ValueError.

    A name that appears twice in one object is an error, not, as JSON has it, the last one's luck:
    it is what a careless merge leaves behind.
    """
    try:
        return json.loads(text, object_pairs_hook=_members)
    except RecursionError as cause:
        message = "nested too deeply"
        raise ValueError(message) from cause


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        message = f"{twice!r} appears twice in one object"
        raise ValueError(message)
    return members


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    r"""Return the line of the value at ``path`` in JSON.

    >>> line_of('{"a": [1,\n 2]}', ("a", 1))
    2
    """
    position = _skip(text, 0)
    for step in path:
        position = _enter(text, position, step)
    return text.count("\n", 0, position) + 1


def _enter(text: str, position: int, step: str | int) -> int:
    """Return where a member of the container at ``position`` begins.

    A member that is not there (a missing field) is placed at its container.
    """
    container = position
    if text[position] not in "{[":
        return container
    is_object = text[position] == "{"
    position = _skip(text, position + 1)
    index = 0
    while text[position] not in "}]":
        name: str | int = index
        if is_object:
            name, position = _DECODER.raw_decode(text, position)
            position = _skip(text, position, also=":")
        if name == step:
            return position
        _, position = _DECODER.raw_decode(text, position)
        position = _skip(text, position, also=",")
        index += 1
    return container


def _skip(text: str, position: int, *, also: str = "") -> int:
    while position < len(text) and text[position] in " \t\r\n" + also:
        position += 1
    return position


_DECODER: Final = json.JSONDecoder()
