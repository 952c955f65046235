"""The worker's end of its conversation with the orchestrator: a line of JSON each way in turn."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The answer when nobody is there to give one.
GONE: Final = "the process that started this worker is gone"
#: No report that pytest makes is nested so far.
_DEEPEST: Final = 40
#: A key that is no word or a class of its own, a circle or a number of a thousand digits, depth.
_UNTOLD: Final = (TypeError, ValueError, RecursionError)


@dataclass(slots=True)
class Channel:
    """Says something and waits for the answer.

    A worker that waits is quiet while the orchestrator works, and the other way round: nothing is
    printed or judged while a test is timed, and the output of both comes in order.
    """

    descriptor: int
    _socket: socket.socket | None = field(init=False, default=None)
    _owner: int = field(init=False)

    def __post_init__(self) -> None:
        self._owner = os.getpid()
        self._socket = socket.socket(fileno=self.descriptor)
        # What the tests start must not keep the channel open.
        self._socket.set_inheritable(False)

    def say(self, document: Mapping[str, object]) -> str | None:
        """Send a document; return why the worker should stop, None to go on."""
        if self._socket is None or os.getpid() != self._owner:  # a fork of ours has no say
            return None if self._socket else GONE
        try:
            self._socket.sendall(_text(document).encode() + b"\n")
            return self._answer()
        except OSError:
            self._let_go()
            return GONE

    def _answer(self) -> str | None:
        assert self._socket is not None
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._socket.recv(4096)
            if not part:
                self._let_go()
                return GONE
            answer += part
        stop = json.loads(answer)
        return stop if isinstance(stop, str) else None

    def _let_go(self) -> None:
        """Say no more. Not closed: a test may have done that, and the number be another file's."""
        if self._socket is not None:
            self._socket.detach()
            self._socket = None


def _text(document: Mapping[str, object]) -> str:
    """Return a document as JSON; what a plugin put there that JSON cannot hold, by its text."""
    try:
        return json.dumps(document, default=_described)
    except _UNTOLD:
        return json.dumps(_plain(document, depth=_DEEPEST))


def _plain(value: object, *, depth: int) -> object:
    if isinstance(value, dict) and depth:
        return {
            key if isinstance(key, str) else _described(key): _plain(member, depth=depth - 1)
            for key, member in value.items()
        }
    if isinstance(value, (list, tuple)) and depth:
        return [_plain(member, depth=depth - 1) for member in value]
    try:
        json.dumps(value)
    except _UNTOLD:
        return _described(value)
    return value


def _described(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 (somebody else's class)
        return f"<{type(value).__name__}>"
