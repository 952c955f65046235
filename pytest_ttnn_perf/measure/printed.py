"""What a test prints, kept beside where it goes: where pytest captures nothing, we must."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: More than any profiler prints; a test that prints without end must not fill the memory.
_MOST_KEPT: Final = 1 << 24


class Tee:
    """A stream that keeps what is written to it; in all else it is the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._kept: list[str] = []
        self._room = _MOST_KEPT

    def write(self, text: str) -> int:
        """Write to the stream, and keep it."""
        if self._room > 0:
            self._kept.append(text)
            self._room -= len(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, and keep them."""
        for line in lines:
            self.write(line)

    @property
    def kept(self) -> str:
        """What was written, from its beginning on."""
        return "".join(self._kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def kept_output() -> Iterator[Tee]:
    """Keep what this process prints through ``sys.stdout`` meanwhile."""
    stream = sys.stdout
    tee = Tee(stream)
    sys.stdout = tee
    try:
        yield tee
    finally:
        # A test that put another stream there, and left it, keeps it.
        if sys.stdout is tee:
            sys.stdout = stream
