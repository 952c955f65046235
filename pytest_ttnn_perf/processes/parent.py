"""A worker's tie to the process that started it."""

from __future__ import annotations

import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies, however that happens.

    A worker whose orchestrator was killed would hold its device for nobody. Where there is no
    such call, it notices at its next message.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
