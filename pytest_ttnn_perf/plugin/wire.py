"""The messages of a worker, one JSON line each, and its link.

A report is pytest's own serialisation of it, which nothing here looks into but for the
observation it may carry.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, ValidationError, convert

from pytest_ttnn_perf.core.assignment import Assignment
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.files import read_json
from pytest_ttnn_perf.machine.processes import CHANNEL, Channel, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

#: The member of a serialised report, and the attribute of a report, that holds its observation.
OBSERVATION: Final = "ttnn_perf"
#: The same for what the test is filed under; absent where that is its id.
IDENTITY: Final = "ttnn_perf_identity"
#: The attribute of a report of a test that was stopped, to be run in a process of its own.
APART: Final = "ttnn_perf_apart"
#: The phases of a test, as pytest names them.
PHASES: Final = ("setup", "call", "teardown")

#: Where a test is written, as pytest has it: file, line and name.
Place = tuple[str, int | None, str]

#: What each kind of message holds. Tests can write into the stream of their worker.
_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    # The tests to come; without ``measured``, they are distributed. ``confirm`` is what options and
    # configuration say, ``root`` is pytest's root folder; None for untold.
    # ``identities`` has what tests are filed under, by id, where that is not the id.
    "collected": {
        "tests": list[str], "measured": list[str] | None, "deselected": list[str],
        "confirm": int | None, "root": str | None,
        "identities": dict[str, str],
    },
    "started": {"test": str, "location": Place},
    # The end of a test's phase, or a file without tests.
    "reported": {"report": dict[str, Any]},
    "warned": {
        "text": str, "category": str, "filename": str, "line": int, "when": str, "test": str,
        "location": Place | None,
    },
    # A device is opened; from now on its chips are this worker's.
    "opened": {},
    # A test is over, teardown included. ``apart``: it was stopped before it started a profiled
    # process, which would wait for the worker's chips, or write into its profiler's folder. It
    # needs a worker of its own.
    "finished": {"test": str, "location": Place, "apart": bool},
    # A mistake of the user's, an internal error of pytest, or a test or plugin ended the session.
    "stopped": {
        "cause": Literal["refused", "broke", "ended"], "text": str, "code": int | None,
    },
    # Modules of another version than the tested one, with their files.
    "strayed": {"modules": list[Any]},
    # The last message of a worker that came to its end.
    "ended": {"status": int},
}  # fmt: skip


class Message(Struct, frozen=True):
    """A worker's message: its kind, and what that kind holds."""

    kind: str
    data: Mapping[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    @property
    def test(self) -> str:
        return str(self["report"]["nodeid"] if self.kind == "reported" else self["test"])

    @property
    def of_collection(self) -> bool:
        return bool(self["report"].get("$report_type") == "CollectReport")

    @property
    def observed(self) -> Any:
        """The observation that the report carries, as it came; None without one."""
        return self["report"].get(OBSERVATION)


def message_of(document: Any) -> Message:
    """Return the message that a document holds.

    Raises:
        DecodeError: it holds none; the stream is damaged.
    """
    try:
        kinds = _KINDS[document["kind"]]
        data = {name: convert(document[name], kind) for name, kind in kinds.items()}
        message = Message(document["kind"], data)
        if message.kind == "reported":
            convert(message["report"]["nodeid"], str)
            if not message.of_collection:
                convert(message["report"]["location"], Place)
    except (LookupError, TypeError, ValidationError) as cause:
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


class OrchestratorLink:
    """A worker's assignment, the file it came in, and its channel."""

    def __init__(self, file: Path, assignment: Assignment, channel: Channel | None) -> None:
        self.file, self.assignment, self.channel = file, assignment, channel

    def send(self, kind: str, *, wait: bool = True, **data: object) -> str | None:
        """Send a message; return why this worker should stop, if it should."""
        if self.channel is None:
            return None
        return self.channel.send({"kind": kind, **data}, wait=wait)


def take_link(environment: MutableMapping[str, str]) -> OrchestratorLink | None:
    """Return this process' link if it was started as a worker; once."""
    name, descriptor = environment.pop(ASSIGNMENT, None), environment.pop(CHANNEL, "")
    if name is None:
        return None
    die_with_parent()
    file = Path(name)
    assignment = read_assignment(file)
    if assignment.batch:
        return OrchestratorLink(file, assignment, None)
    channel = Channel(int(descriptor), in_turn=assignment.shown)
    return OrchestratorLink(file, assignment, channel)


def read_assignment(file: Path) -> Assignment:
    return read_json(file, partial(decode, Assignment))
