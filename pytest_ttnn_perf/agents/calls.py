"""One call of a tool: its command, run to its end, and the answer that this makes."""

from __future__ import annotations

import json
import os
import tempfile
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.files import LARGEST_TEXT_BYTES
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.agents.answers import as_error, bounded, fitted
from pytest_ttnn_perf.processes.interruptible import InterruptibleCommand
from pytest_ttnn_perf.processes.worker import interpreter
from pytest_ttnn_perf.report.sentences import command_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.agents.answers import Message
    from pytest_ttnn_perf.agents.protocol import Request

#: As the installed script does it: nothing is imported from the folder that a client works in.
_START: Final = (
    "import sys; sys.path[:1] == [''] and sys.path.pop(0); "
    "from pytest_ttnn_perf.cli.main import main; sys.exit(main())"
)
#: How our own messages begin, other than lines that say how far a command is.
_OURS: Final = "ttnn-perf"
_KEPT_LINES: Final = 60
_MOST_MESSAGES: Final = 3
_MOST_MESSAGE_BYTES: Final = 400
_MOST_COMMAND_BYTES: Final = 1500


class Call:
    """A call that waits or runs; ``tell`` is given a line whenever there is something to tell."""

    def __init__(self, request: Request, words: Sequence[str], tell: Callable[[str], None]) -> None:
        self.request, self._words, self._tell = request, words, tell
        self._command = InterruptibleCommand([*interpreter(), "-c", _START, *words])

    def wait_for(self, others: int) -> None:
        """Say that it is not its turn yet."""
        self._tell(f"waits for {counted(others, 'earlier call')}")

    def cancel(self) -> None:
        """End it as Ctrl-C would; it gets no answer."""
        self._command.interrupt()

    def run(self) -> Message | None:
        """Run the command, and return what it answers; None if the call was cancelled."""
        said: deque[str] = deque(maxlen=_KEPT_LINES)

        def on_line(line: str) -> None:
            said.append(line)
            if not self._command.interrupted:  # a cancelled call is told nothing more
                self._tell(line)

        try:
            with tempfile.TemporaryFile() as stdout:
                code = self._command.run(stdout, on_line)
                answered, answer = _answer_in(stdout)
        except OSError as error:
            text = f"ttnn-perf could not be run: {error.strerror or error}"
            return self.request.answer(as_error(text))
        if code is None or self._command.interrupted:
            return None
        command = bounded(command_line("ttnn-perf", *self._words), _MOST_COMMAND_BYTES)
        if not answered:
            text = _complaint(said) or f"{command} ended with code {code}, and said nothing"
            return self.request.answer(as_error(text))
        head: Message = {"command": command, "exit_code": code}
        messages = [line for line in said if line.startswith(_OURS)][-_MOST_MESSAGES:]
        if messages:
            head["messages"] = [bounded(line, _MOST_MESSAGE_BYTES) for line in messages]
        return fitted(self.request.answer, head, answer)


def _answer_in(stdout: IO[bytes]) -> tuple[bool, Any]:
    """Return whether a command has printed a document, and that document."""
    if os.fstat(stdout.fileno()).st_size > LARGEST_TEXT_BYTES:
        return True, f"more than {LARGEST_TEXT_BYTES >> 20} MiB"
    stdout.seek(0)
    try:
        return True, json.loads(stdout.read())
    except (ValueError, RecursionError):
        return False, None


def _complaint(said: Iterable[str]) -> str:
    """Return the last thing that a command complained of, without a traceback before it."""
    lines = list(said)
    starts = [number for number, line in enumerate(lines) if line.startswith(_OURS)]
    return "\n".join(lines[starts[-1] if starts else -1 :]).strip()
