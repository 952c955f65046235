"""A process that dies before a step of its own choice; loaded into commands that are to die."""

from __future__ import annotations

import os
import signal
import sys

#: What Python and git keep for themselves.
OTHERS = ("__pycache__", ".git" + os.sep, ".pytest_cache")


def die_before(number: int, folder: str, log: str) -> None:
    """Kill this process before the step of that number that it takes on disk below a folder.

    Python tells of every file that is opened, renamed or removed before it does it. Each is a byte
    in ``log``.
    """
    steps = 0
    told = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        if not _changes(event, arguments, folder):
            return
        steps += 1
        if steps == number:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(told, b".")

    sys.addaudithook(look)


def _changes(event: str, arguments: tuple[object, ...], folder: str) -> bool:
    if event == "open":
        flags = arguments[2]
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return False
    elif event not in {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link"}:
        return False
    path = arguments[0]
    if not isinstance(path, str | os.PathLike):
        return False
    place = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 (pathlib costs more)
    return place.startswith(folder) and not any(part in place for part in OTHERS)


if __name__ == "__main__":
    import pytest

    _number, _folder, _log, *_words = sys.argv[1:]
    die_before(int(_number), _folder, _log)
    sys.exit(pytest.main(_words))
