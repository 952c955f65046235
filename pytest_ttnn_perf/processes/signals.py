"""Signals that end a process, while it has something to clear up."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupting() -> Iterator[None]:
    """Let what would end this process at once interrupt it, as Ctrl-C does."""
    with _handled(_ENDING, signal.default_int_handler):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """Be deaf to Ctrl-C and the like for the moment that clearing up takes."""
    with _handled((signal.SIGINT, *_ENDING), signal.SIG_IGN):
        yield


@contextmanager
def _handled(
    numbers: tuple[signal.Signals, ...], handler: Callable[..., Any] | signal.Handlers
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals, or may say what becomes of them
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, usual in before.items():
            # None: it was not set by Python, and Python cannot set it again.
            signal.signal(number, signal.SIG_DFL if usual is None else usual)
