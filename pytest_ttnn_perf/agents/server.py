"""``ttnn-perf mcp``: requests of a client on stdin, answers on stdout, a line of JSON each.

Tools are called one after another, so that no command disturbs what another one measures; anything
else is answered at once.
"""

from __future__ import annotations

import contextlib
import threading
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Final

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.agents.answers import as_error, bounded, encoded
from pytest_ttnn_perf.agents.calls import Call
from pytest_ttnn_perf.agents.protocol import (
    BAD_PARAMS,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NO_METHOD,
    Cancelled,
    ProtocolError,
    about,
    for_now,
    read_message,
    shown,
)
from pytest_ttnn_perf.processes.channel import signals_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.agents.answers import Message
    from pytest_ttnn_perf.agents.protocol import Id, Request
    from pytest_ttnn_perf.agents.tools import Toolbox

LONGEST_LINE_BYTES: Final = 1 << 20
_MOST_PROGRESS_BYTES: Final = 600
#: What a command that is running when the client goes gets to end by itself.
_LAST_S: Final = 90.0
_METHODS: Final = "initialize, server/discover, ping, tools/list and tools/call"


class _ClientGoneError(Exception):
    """Nobody reads any more what is answered."""


class Server:
    """Answers one client until it is gone."""

    def __init__(self, tools: Toolbox, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._tools, self._stdin, self._stdout = tools, stdin, stdout
        self._writing = threading.Lock()
        self._waiting: SimpleQueue[Call | None] = SimpleQueue()
        self._calls: dict[Id, Call] = {}

    def serve(self) -> None:
        """Answer until the client closes its end, or this process is told to end.

        What is running then is ended as Ctrl-C does.
        """
        # A daemon: a client that reads nothing any more must not keep this process for ever.
        caller = threading.Thread(target=self._run_calls, daemon=True)
        caller.start()
        try:
            with contextlib.suppress(KeyboardInterrupt, _ClientGoneError), signals_interrupt():
                for line in self._lines():
                    self._take(line)
        finally:
            self._waiting.put(None)
            for call in list(self._calls.values()):
                call.cancel()
            caller.join(_LAST_S)

    def _lines(self) -> Iterator[bytes | None]:
        """Yield the lines that are not empty; None for one that is too long to be read."""
        while line := self._stdin.readline(LONGEST_LINE_BYTES):
            is_whole = line.endswith(b"\n") or len(line) < LONGEST_LINE_BYTES
            while not is_whole and line and not line.endswith(b"\n"):
                line = self._stdin.readline(LONGEST_LINE_BYTES)
            if not is_whole:
                yield None
            elif line.strip():
                yield line.strip()

    def _take(self, line: bytes | None) -> None:
        try:
            if line is None:
                text = f"expected a line of at most {LONGEST_LINE_BYTES} bytes, found a longer one"
                raise ProtocolError(INVALID_REQUEST, text)
            message = read_message(line)
            if isinstance(message, Cancelled):
                self._cancel(message.id)
            elif message is not None:
                self._answer(message)
        except ProtocolError as error:
            self._send(error.message())

    def _answer(self, request: Request) -> None:
        try:
            self._do(request)
        except (ProtocolError, _ClientGoneError):
            raise
        except Exception as error:  # one request must not cost the client all others
            raise request.error(INTERNAL_ERROR, _defect(error)) from error

    def _do(self, request: Request) -> None:
        match request.method:
            case "initialize" | "server/discover":
                self._send(request.answer(about(request)))
            case "ping":
                self._send(request.answer({}))
            case "tools/list":
                listed = {"tools": self._tools.listed(), **for_now(request)}
                self._send(request.answer(listed))
            case "tools/call":
                self._call(request)
            case unknown:
                text = f"expected one of {_METHODS}, found {shown(unknown)}"
                raise request.error(NO_METHOD, text)

    def _call(self, request: Request) -> None:
        """Let a call wait for its turn; what is wrong with its arguments, an agent is to read."""
        name, given = request.params.get("name"), request.params.get("arguments")
        tool = self._tools.find(name)
        if tool is None:
            known = ", ".join(self._tools.names)
            raise request.error(BAD_PARAMS, f"expected a tool of {known}, found {shown(name)}")
        if given is not None and not isinstance(given, dict):
            text = f"expected arguments as an object, found {shown(given)}"
            raise request.error(BAD_PARAMS, text)
        if request.id in self._calls:
            text = f"expected an id that is not in use, found {shown(request.id)}"
            raise request.error(INVALID_REQUEST, text)
        tell = self._teller(request.progress_token)
        try:
            self._tools.check_allowed(tool)
            call = Call(request, tool.command_line(given or {}), tell)
        except TtnnPerfError as error:
            self._send(request.answer(as_error(str(error))))
            return
        others = len(self._calls)
        self._calls[request.id] = call
        if others:
            call.wait_for(others)
        self._waiting.put(call)

    def _teller(self, token: Id | None) -> Callable[[str], None]:
        """Return what tells the client how far a call is, if it wants to know."""
        told = 0

        def tell(line: str) -> None:
            nonlocal told
            if token is None or not line.strip():
                return
            told += 1
            said = bounded(line, _MOST_PROGRESS_BYTES)
            params = {"progressToken": token, "progress": told, "message": said}
            # Of a client that is gone, stdin tells; the command must not be lost for that.
            with contextlib.suppress(_ClientGoneError):
                self._send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

        return tell

    def _cancel(self, asked: Id) -> None:
        call = self._calls.get(asked)
        if call is not None:  # else it has ended meanwhile
            call.cancel()

    def _run_calls(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                answer = call.run()
            except Exception as error:  # noqa: BLE001 (the calls that wait would wait for ever)
                answer = call.request.answer(as_error(_defect(error)))
            del self._calls[call.request.id]
            if answer is not None:
                with contextlib.suppress(_ClientGoneError):  # as for progress
                    self._send(answer)

    def _send(self, message: Message) -> None:
        rest = memoryview(encoded(message))
        try:
            with self._writing:
                while rest:
                    rest = rest[self._stdout.write(rest) :]
        except OSError as error:
            raise _ClientGoneError from error


def _defect(error: Exception) -> str:
    return (
        f"ttnn-perf {__version__}: internal error, a defect of ours and no verdict: "
        f"{type(error).__name__}: {error}"
    )
