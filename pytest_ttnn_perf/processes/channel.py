"""The worker's end of its conversation with the orchestrator: a line of JSON each way in turn."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The answer when nobody is there to give one.
GONE = "the process that started this worker is gone"


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
        # What a plugin put on a report and JSON cannot hold is told by its text.
        line = json.dumps(document, default=repr).encode() + b"\n"
        try:
            self._socket.sendall(line)
            return self._answer()
        except OSError:
            self._socket = None
            return GONE

    def _answer(self) -> str | None:
        assert self._socket is not None
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._socket.recv(4096)
            if not part:
                self._socket = None
                return GONE
            answer += part
        stop = json.loads(answer)
        return stop if isinstance(stop, str) else None
