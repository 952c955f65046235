"""The messages of a worker, one JSON line each, and its link.

A report is pytest's own serialisation of it, which nothing here looks into but for the
observation it may carry.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (read with a message)
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from pytest_ttnn_perf.core.assignment import Assignment
from pytest_ttnn_perf.core.codec import Coding, Value, decode, encode
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import read_json
from pytest_ttnn_perf.core.observation import SweepPoint  # noqa: TC001 (read with a message)
from pytest_ttnn_perf.machine.processes import CHANNEL, Channel, die_with_parent

if TYPE_CHECKING:
    from collections.abc import MutableMapping

#: The member of a serialised report, and the attribute of a report, that holds its observation.
OBSERVATION: Final = "ttnn_perf"
#: The same for what the test is filed under; absent where that is its id.
IDENTITY: Final = "ttnn_perf_identity"
#: The attribute of a report of a test that was stopped, to be run in a process of its own.
APART: Final = "ttnn_perf_apart"
#: The phases of a test, as pytest names them.
PHASES: Final = ("setup", "call", "teardown")

#: No exit code and no line of a file is larger: what is fits no C integer, and no pytest.
_LARGEST: Final = 2**31 - 1


def _read_whole(value: Value) -> int:
    if not isinstance(value.raw, int) or abs(value.raw) > _LARGEST:
        raise value.refusal("a whole number")
    return value.raw


def _read_location(value: Value) -> list[Any]:
    match value.raw:
        case [str(), int() as line, str()] if abs(line) <= _LARGEST:
            return list(value.raw)
        case [str(), None, str()]:
            return list(value.raw)
    raise value.refusal("file, line and name")


def _read_word(value: Value) -> str:
    if "\0" in value.string():
        raise value.refusal("a name")
    return value.string()


#: Any number, such as an exit code; others are counts.
Whole = Annotated[int, Coding(_read_whole)]
#: Where a test is written, as pytest has it: file, line and name.
Place = Annotated[list[Any], Coding(_read_location)]
Word = Annotated[str, Coding(_read_word)]


class Message(Struct, frozen=True):
    """A message of a worker."""

    def document(self) -> dict[str, object]:
        """Return the message as plain JSON."""
        return {"kind": type(self).__name__, **encode(self)}


class Collected(Message, frozen=True):
    """The tests to come; without ``measured``, they are distributed.

    ``baselines`` and ``confirm`` are what its options and configuration say, ``root`` is pytest's
    root folder; None for untold. ``identities`` has what tests are filed under, by id, where that
    is not the id. ``points`` are those that are points of a sweep: one whose process dies cannot
    say so.
    """

    tests: list[str]
    measured: list[str] | None
    deselected: list[str]
    lines: list[str]
    baselines: str | None = None
    confirm: Annotated[int | None, Coding(_read_whole)] = None
    root: str | None = None
    identities: Mapping[str, str] = {}
    points: Mapping[str, SweepPoint] = {}


class Started(Message, frozen=True):
    """A test starts."""

    test: str
    location: Place


class Reported(Message, frozen=True):
    """The end of a test's phase, or a file without tests."""

    report: dict[str, Any]

    @property
    def of_collection(self) -> bool:
        """The report is of a file or class, not of a test."""
        return self.report.get("$report_type") == "CollectReport"

    @property
    def test(self) -> str:
        """The test's id."""
        return str(self.report["nodeid"])

    @property
    def phase(self) -> str:
        """``setup``, ``call`` or ``teardown``."""
        return str(self.report.get("when"))

    @property
    def observed(self) -> Any:
        """The observation that the report carries, as it came; None without one."""
        return self.report.get(OBSERVATION)

    @property
    def identity(self) -> str | None:
        """The test's identity; None where it is its id, or sent before."""
        told = self.report.get(IDENTITY)
        return told if isinstance(told, str) else None


class Warned(Message, frozen=True):
    """A warning was recorded."""

    text: str
    category: Word
    filename: Word
    line: Whole
    when: str
    test: str
    location: Annotated[list[Any] | None, Coding(_read_location)]


class Opened(Message, frozen=True):
    """A device is opened; from now on its chips are this worker's."""


class Finished(Message, frozen=True):
    """A test is over, teardown included.

    ``apart``: it was stopped before it started a profiled process, and needs a worker of its own.
    That process would wait for chips that this worker has, or be given its profiler's folder.
    """

    test: str
    location: Place
    apart: bool = False


class StopCause(Enum):
    """Reasons for a worker to end before its time."""

    REFUSED = "a mistake of the user's"
    BROKE = "an internal error of its pytest"
    ENDED = "a test or a plugin ended its session"


class Stopped(Message, frozen=True):
    """An early end of the worker's session; ``code`` is its exit code."""

    cause: StopCause
    text: str
    code: Annotated[int | None, Coding(_read_whole)] = None


class Strayed(Message, frozen=True):
    """Modules of another version than the tested one, with their files."""

    modules: list[Any]


class Ended(Message, frozen=True):
    """The last message of a worker that came to its end."""

    status: Whole


_KINDS: Final[Mapping[str, type[Message]]] = {
    kind.__name__: kind
    for kind in (
        Collected, Started, Reported, Warned, Opened, Finished, Stopped, Strayed, Ended,
    )
}  # fmt: skip


def message_of(document: Any) -> Message:
    """Return the message that a document holds.

    Raises:
        DecodeError: it holds none; the stream is damaged.
    """
    try:
        kind = _KINDS[document["kind"]]
        if not document.keys() >= set(kind.__struct_fields__):
            raise KeyError
        message = decode(kind, document)
        if isinstance(message, Reported):
            Value(message.report["nodeid"]).string()
            if not message.of_collection:
                _read_location(Value(message.report["location"]))
    except (LookupError, TypeError, ValueError, DecodeError) as cause:
        raise DecodeError((), "a message of a worker", repr(document)[:80]) from cause
    return message


#: Names the file with a worker's assignment. The worker takes it out of its environment, so that
#: a pytest that a test starts is not taken for another worker.
ASSIGNMENT: Final = "TTNN_PERF_ASSIGNMENT"
#: The same for the processes that a worker distributes its tests to.
SHARE: Final = "TTNN_PERF_SHARE"
#: Names the role of a process, for conftest files: they are loaded in each of a run's.
ROLE: Final = "TTNN_PERF_ROLE"
WORKER: Final = "worker"


class OrchestratorLink(Struct, frozen=True):
    """A worker's assignment, the file it came in, and its channel."""

    file: Path
    assignment: Assignment
    channel: Channel | None

    def send(self, message: Message, *, wait: bool = True) -> str | None:
        """Send a message; return why this worker should stop, if it should."""
        if self.channel is None:
            return None
        return self.channel.send(message.document(), wait=wait)


def take_link(environment: MutableMapping[str, str]) -> OrchestratorLink | None:
    """Return this process' link if it was started as a worker; once.

    Raises:
        InputError: there is no assignment, or no orchestrator at the other end.
    """
    name, descriptor = environment.pop(ASSIGNMENT, None), environment.pop(CHANNEL, "")
    if name is None:
        return None
    die_with_parent()
    file = Path(name)
    assignment = read_assignment(file)
    if assignment.batch:
        return OrchestratorLink(file, assignment, None)
    try:
        channel = Channel(int(descriptor), in_turn=assignment.shown)
    except (OSError, ValueError, OverflowError) as cause:
        problem = f"its channel {descriptor} is not open; unset {ASSIGNMENT}"
        raise InputError(file, f"{problem}, which only a worker is given") from cause
    return OrchestratorLink(file, assignment, channel)


def take_share(environment: MutableMapping[str, str]) -> Assignment | None:
    """Return the assignment that this process has a share in; once."""
    file = environment.pop(SHARE, None)
    return None if file is None else read_assignment(Path(file))


def read_assignment(file: Path) -> Assignment:
    """Read an assignment.

    Raises:
        InputError: the file is unreadable or malformed.
    """
    return read_json(file, partial(decode, Assignment))
