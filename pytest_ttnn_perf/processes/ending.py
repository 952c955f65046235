"""How a worker ended, in words."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ending:
    """``code`` as Popen has it; ``silent_s`` when it was killed for having said nothing so long.

    ``cut`` says that its last message was incomplete; ``damaged`` that it was killed for one that
    cannot be read.
    """

    code: int
    silent_s: float | None = None
    cut: bool = False
    damaged: bool = False

    @property
    def hung(self) -> bool:
        """Whether it was killed because nothing was heard of it."""
        return self.silent_s is not None

    def __str__(self) -> str:
        if self.silent_s is not None:
            return f"hung: no sign of life for {self.silent_s:g} s, killed"
        if self.damaged:
            return "sent a message that cannot be read, killed"
        how = _signal_name(-self.code) if self.code < 0 else f"exit code {self.code}"
        text = f"was killed by {how}" if self.code < 0 else f"ended with {how}"
        return text + (", in the middle of a message" if self.cut else "")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
