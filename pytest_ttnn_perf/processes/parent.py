"""A worker's tie to the process that started it."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
#: Asks a worker to print the stacks of its threads.
STACK: Final = signal.SIGQUIT


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies, however that happens.

    A worker whose orchestrator was killed would hold its device for nobody. Where there is no
    such call, it notices at its next message.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def show_stacks_on_request() -> None:
    """Print where this process is when its parent asks, also while it hangs in foreign code.

    To where stderr goes now, which is not yet where pytest's capturing will send it.
    """
    faulthandler.register(STACK, file=os.dup(2), all_threads=True, chain=False)
