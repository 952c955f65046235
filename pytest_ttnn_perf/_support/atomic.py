"""Files that are either the old one or the new one, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from pytest_ttnn_perf._support.errors import WriteError


def write_text(file: Path, text: str) -> None:
    """Replace ``file`` by ``text`` in one step.

    The new content reaches the disk before the name does: after a crash or a full disk the file
    holds its old content or all of the new one.

    Raises:
        WriteError: the folder or the disk refused; the old file is untouched.
    """
    try:
        target = file.resolve()  # a link stays one
        if target.exists() and not target.is_file():  # a pipe or a device, such as /dev/stdout
            target.write_text(text, encoding="utf-8", newline="\n")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".new"
        )
    except OSError as cause:
        raise WriteError(file, cause) from cause
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; a baseline is shared like any source file.
        temporary.chmod(_mode_of(target))
        temporary.replace(target)
    except OSError as cause:
        raise WriteError(file, cause) from cause
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_file(file: Path, *, up_to: Path) -> None:
    """Remove a file, if there is one, and the folders that this leaves empty, below ``up_to``.

    Raises:
        WriteError: the folder refused; the file is still there.
    """
    try:
        file.unlink(missing_ok=True)
    except NotADirectoryError:
        return
    except OSError as cause:
        raise WriteError(file, cause, doing="remove") from cause
    for folder in file.parents:
        if folder == up_to or up_to not in folder.parents:
            return
        with contextlib.suppress(OSError):
            folder.rmdir()  # refuses a folder that holds anything


def check_writable(folder: Path) -> None:
    """Raise WriteError unless a file could be made in ``folder``, which need not exist yet.

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
    """Return the permissions the new file gets: those of the old one, else the usual ones."""
    with contextlib.suppress(OSError):
        return file.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
