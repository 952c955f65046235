"""A client that says exactly what a test says, right or wrong."""

from __future__ import annotations

import io
import json
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.agents.mcp import Server

if TYPE_CHECKING:
    from pathlib import Path

#: A server that is silent for so long hangs.
PATIENCE_S = 300


def request(method: str, number: str | int = 1, /, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: str | int, name: str, token: object = None, /, **said: Any) -> dict[str, Any]:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return request("tools/call", number, name=name, arguments=said, **meta)


def answers_to(said: bytes, forbidden: str | None = None) -> list[dict[str, Any]]:
    """Return all that a server says to some bytes, after which its client is gone."""
    stdout = io.BytesIO()
    Server(forbidden, io.BytesIO(said), stdout).serve()
    return [json.loads(line) for line in stdout.getvalue().splitlines()]


class Wire:
    """A server in a thread, and the pipes to it."""

    def __init__(self) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._in = os.fdopen(ours_in, "rb")
        self._theirs = (os.fdopen(theirs_in, "rb"), os.fdopen(theirs_out, "wb", buffering=0))
        self.thread = threading.Thread(target=Server(None, *self._theirs).serve)
        self.thread.start()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        for file in (self._in, *self._theirs):
            file.close()

    def hang_up(self) -> None:
        """Go, and wait for the server to be gone too."""
        self._out.close()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()

    def send(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self._out.write(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        ready, _, _ = select.select([self._in], [], [], 0 if self._in.peek(1) else PATIENCE_S)
        assert ready or self._in.peek(1), "the server says nothing"
        line = self._in.readline()
        message: dict[str, Any] = json.loads(line)
        assert len(line) <= 8192
        return message

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.send(message)
        return self.receive()


def text_of(message: dict[str, Any]) -> str:
    (content,) = message["result"]["content"]
    return str(content["text"])


def wait_for(file: Path) -> None:
    """Wait until another process has written a file."""
    stop_s = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < stop_s
        time.sleep(0.02)
