"""A worker's link to its orchestrator: what it is to do, and whom it tells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf._support.json_text import read_json
from pytest_ttnn_perf.model.encoding.assignments import decode_assignment
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.processes.channel import Channel
from pytest_ttnn_perf.processes.parent import die_with_parent, show_stacks_on_request
from pytest_ttnn_perf.workflow.passes import ASSIGNMENT

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pytest_ttnn_perf.model.assignment import Assignment
    from pytest_ttnn_perf.model.message import Message

#: The same for the processes that a worker distributes its tests to.
SHARE: Final = "TTNN_PERF_SHARE"


@dataclass(frozen=True, slots=True)
class Link:
    """A worker's assignment, the file it came in, and its channel."""

    file: Path
    assignment: Assignment
    channel: Channel | None

    def prepare(self) -> None:
        """Get ready to be asked for what a hanging process cannot say."""
        show_stacks_on_request()

    def say(self, message: Message) -> str | None:
        """Tell the orchestrator; return why this worker should stop, None to go on."""
        return None if self.channel is None else self.channel.say(message.document())


def take_link(environment: MutableMapping[str, str]) -> Link | None:
    """Return this process' link if it was started as a worker; once.

    Raises:
        InputError: there is no assignment, or nobody at the other end.
    """
    name = environment.pop(ASSIGNMENT, None)
    if name is None:
        return None
    die_with_parent()
    file = Path(name)
    assignment = read_assignment(file)
    if assignment.descriptor is None:
        return Link(file, assignment, None)
    try:
        channel = Channel(assignment.descriptor)
    except (OSError, ValueError, OverflowError) as cause:
        problem = f"its channel {assignment.descriptor} is not open; unset {ASSIGNMENT}"
        raise InputError(file, f"{problem}, which only a worker is given") from cause
    return Link(file, assignment, channel)


def take_share(environment: MutableMapping[str, str]) -> Assignment | None:
    """Return the assignment that this process has a share in; once."""
    file = environment.pop(SHARE, None)
    return None if file is None else read_assignment(Path(file))


def read_assignment(file: Path) -> Assignment:
    """Read an assignment.

    Raises:
        InputError: the file is unreadable or malformed.
    """
    return read_json(file, lambda document: decode_assignment(Value(document)))
