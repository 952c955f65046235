"""The real-time profiler: records of programs that come a little later, on another thread."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from typing import TYPE_CHECKING

from . import _machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._programs import Run

#: How late records come.
_DELAY_S = 0.02


class Record:
    """A program that ran; its sources can be read until the callback returns."""

    def __init__(self, run: Run) -> None:
        self.runtime_id = run.runtime_id & 0xFFFF
        self.chip_id = run.chip
        self.start_timestamp = run.start
        self.end_timestamp = run.end
        self.frequency = 1.0
        self._sources: list[str] | None = [f"ttnn/cpp/ttnn/operations/{run.code}/kernel.cpp"]

    @property
    def kernel_sources(self) -> list[str]:
        """Where the kernels come from."""
        if self._sources is None:
            message = "FAKE_TTNN: kernel_sources were read after the callback had returned"
            raise RuntimeError(message)
        return list(self._sources)

    def release(self) -> None:
        self._sources = None


class Batch:
    """Records, oldest first."""

    dropped = 0

    def __init__(self, records: list[Record]) -> None:
        self.records = records


class _Listener(threading.Thread):
    def __init__(self, callback: Callable[[Batch], object]) -> None:
        super().__init__(daemon=True, name="realtime profiler")
        self.queue: queue.SimpleQueue[tuple[float, Record] | None] = queue.SimpleQueue()
        self._callback = callback

    def run(self) -> None:
        while (first := self.queue.get()) is not None:
            time.sleep(max(0.0, first[0] - time.monotonic()))
            records = [first[1]]
            while not self.queue.empty():
                following = self.queue.get()
                if following is None:
                    return
                records.append(following[1])
            self._callback(Batch(records))
            for record in records:
                record.release()


class _State:
    opened = False
    handles = 0


_listeners: dict[int, _Listener] = {}


def opened() -> None:
    """Note that a device was opened: from now on asking for records is safe."""
    _State.opened = True


def register(callback: Callable[[Batch], object]) -> int:
    """Call back with the programs that run from now on; the first handle is 0."""
    _after_open()
    listener = _Listener(callback)
    handle = _State.handles
    _State.handles += 1
    _listeners[handle] = listener
    listener.start()
    return handle


def unregister(handle: int) -> None:
    """Stop: no callback is running or will run when this returns. What was on its way is lost."""
    listener = _listeners.pop(handle, None)
    if listener is not None:
        listener.queue.put(None)
        if listener is not threading.current_thread():
            listener.join()


def is_active() -> bool:
    """Return whether any chip sends records."""
    context = _after_open()
    return any(map(context.is_local, range(len(context.chips))))


def emit(run: Run) -> None:
    context = _machine.existing()
    if context is not None and context.is_local(run.chip):
        due = time.monotonic() + _DELAY_S
        for listener in _listeners.values():
            listener.queue.put((due, Record(run)))


def _after_open() -> _machine.Context:
    context = _machine.context()
    if not _State.opened:
        os.kill(os.getpid(), signal.SIGSEGV)
    return context
