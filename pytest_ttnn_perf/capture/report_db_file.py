"""An SQLite file of somebody else, opened so that nothing is ever written, nor half of it read."""

from __future__ import annotations

import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

MAGIC: Final = b"SQLite format 3\x00"
_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_HEADER_BYTES: Final = 100


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; whatever SQLite finds wrong meanwhile is an InputError."""
    import sqlite3

    try:
        before = _checked(file)
        # Immutable: no lock, and no file beside this one; the folder may be read-only.
        uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause
    except (ValueError, sqlite3.Error) as cause:
        raise InputError(file, f"cannot read: {cause}") from cause
    try:
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "ignore_check_constraints=ON"):
            connection.execute(f"PRAGMA {setting}")
        yield connection
        if _state(file) != before:
            raise InputError(file, "it changed while it was read: wait until it is complete")
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause
    # SQLite's own texts, and names in its schema, need not be UTF-8 in a damaged file.
    except (sqlite3.Error, UnicodeDecodeError) as cause:
        problem = " ".join(f"the database is damaged: {cause}".split())
        raise InputError(file, problem[:300]) from cause
    finally:
        connection.close()


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _checked(file: Path) -> tuple[int, int]:
    """Refuse what an immutable view would misread: cut files, and changes that lie elsewhere."""
    if stat.S_ISDIR(file.stat().st_mode):
        raise InputError(file, "expected a file, found a folder")
    state = _state(file)
    with file.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    if not header:
        raise InputError(file, "the file is empty")
    if not header.startswith(MAGIC):
        raise InputError(file, "not an SQLite database: it does not begin as one")
    _refuse_cut(file, header, state[0])
    for suffix in ("-wal", "-journal"):
        beside = file.with_name(file.name + suffix)
        if beside.exists() and _has_changes(beside):
            problem = f"{beside.name} beside it holds changes that are not in it yet: "
            raise InputError(file, problem + "wait until its writer has closed it")
    return state


def _refuse_cut(file: Path, header: bytes, size: int) -> None:
    if len(header) < _HEADER_BYTES:
        raise InputError(file, f"the database is cut off: {size} bytes are left")
    page_bytes = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    expected = pages * (65536 if page_bytes == 1 else page_bytes)
    # The count of pages is only to be trusted where it was written with the last change.
    if header[24:28] == header[92:96] and size < expected:
        raise InputError(file, f"the database is cut off: expected {expected} bytes, found {size}")


def _has_changes(beside: Path) -> bool:
    with beside.open("rb") as stream:
        begin = stream.read(len(_JOURNAL_MAGIC))
    return begin == _JOURNAL_MAGIC if beside.name.endswith("-journal") else bool(begin)
