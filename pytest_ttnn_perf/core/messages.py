"""What a worker tells its orchestrator, one message after another.

A report is pytest's own serialisation of it, which nothing here looks into but for the
observation it may carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Coding, Value, decode, encode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.observation import SweepPoint
from pytest_ttnn_perf.core.settings import ProfilerKind

#: The member of a serialised report, and the attribute of a report, that holds its observation.
OBSERVATION: Final = "ttnn_perf"
#: The same for what the test is filed under; absent where that is its id.
IDENTITY: Final = "ttnn_perf_identity"
#: The attribute of a report of a test that was stopped, to be run in a process of its own.
APART: Final = "ttnn_perf_apart"


class Message(Struct, frozen=True):
    """Something that a worker says."""

    def document(self) -> dict[str, object]:
        """Return the message as plain JSON."""
        return {"kind": type(self).__name__, **encode(self)}


#: The phases of a test, as pytest names them.
PHASES: Final = ("setup", "call", "teardown")


#: No exit code and no line of a file is larger: what is fits no C integer, and no pytest.
_LARGEST: Final = 2**31 - 1


def _read_whole(value: Value) -> int:
    if not isinstance(value.raw, int) or abs(value.raw) > _LARGEST:
        raise value.refusal("a whole number")
    return value.raw


#: Any number, such as an exit code; others are counts.
Whole = Annotated[int, Coding(_read_whole)]


def _read_location(value: Value) -> list[Any]:
    match value.raw:
        case [str(), int() as line, str()] if abs(line) <= _LARGEST:
            return list(value.raw)
        case [str(), None, str()]:
            return list(value.raw)
    raise value.refusal("file, line and name")


#: Where a test is written, as pytest has it.
Place = Annotated[list[Any], Coding(_read_location)]


def _read_word(value: Value) -> str:
    """Read what is to be the name of a file or a class."""
    if "\0" in value.string():
        raise value.refusal("a name")
    return value.string()


Word = Annotated[str, Coding(_read_word)]


class Collected(Message, frozen=True):
    """The tests to come. ``measured`` is None where the worker only distributes them.

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
    """A test starts; ``location`` is file, line and name."""

    test: str
    location: Place


class Reported(Message, frozen=True):
    """One phase of a test has ended."""

    report: dict[str, Any]

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
        """The observation that the report carries, as it came; None for none."""
        return self.report.get(OBSERVATION)

    @property
    def identity(self) -> str | None:
        """What the test is filed under; None where that is its id, or is told elsewhere."""
        told = self.report.get(IDENTITY)
        return told if isinstance(told, str) else None


class CollectionReported(Message, frozen=True):
    """A file or class that could not be collected, or was skipped."""

    report: dict[str, Any]


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


class ProfilesItself(Message, frozen=True):
    """A test was stopped before it started a profiled process: it needs a worker of its own.

    The profiled process waits for the chips that this one has, or is given its profiler's folder.
    """

    test: str


class Finished(Message, frozen=True):
    """A test is over, teardown included."""

    test: str
    location: Place


class Refused(Message, frozen=True):
    """The worker found a mistake of the user's."""

    text: str


class Broke(Message, frozen=True):
    """The worker's pytest ended in an internal error."""

    text: str


class Stopped(Message, frozen=True):
    """A test or a plugin ended the worker's session; ``code`` is the exit code it asked for."""

    text: str
    code: Annotated[int | None, Coding(_read_whole)]


class Strayed(Message, frozen=True):
    """Modules that are not of the version under test: the name and the file of each."""

    modules: list[Any]


class Ended(Message, frozen=True):
    """The last message of a worker that came to its end."""

    status: Whole


_KINDS: Final[Mapping[str, type[Message]]] = {
    kind.__name__: kind
    for kind in (
        Collected, Started, Reported, CollectionReported, Warned, Finished, Refused, Broke,
        Stopped, Ended, Opened, Strayed, ProfilesItself,
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
        if isinstance(message, (Reported, CollectionReported)):
            Value(message.report["nodeid"]).string()
        if isinstance(message, Reported):
            _read_location(Value(message.report["location"]))
    except (LookupError, TypeError, ValueError, DecodeError) as cause:
        raise DecodeError((), "a message of a worker", repr(document)[:80]) from cause
    return message


class PassKind(Enum):
    """The passes over the tests of a run."""

    DEVICE = "device"
    WALL = "wall"
    CONFIRM = "confirm"
    CALIBRATE = "calibrate"
    AB = "ab"


class ComparedVersions(Struct, frozen=True):
    """Two versions of one project: a worker runs the tests of its ``own`` and not the ``other``'s.

    What lies below ``shared``, relative to either, may be the other's. ``settings`` is the folder
    whose configuration holds for the measurement; None for that of the worker's own root.
    ``receipts``: it is recorded how times are taken. ``checklist``: rules are asked.
    """

    own: Path
    other: Path
    shared: tuple[str, ...] = ()
    settings: Path | None = None
    receipts: bool = False
    checklist: bool = False


class Assignment(Struct, frozen=True):
    """One worker's task, which it reads from a file: thousands of ids fit no command line.

    ``descriptor`` is its end of the channel; None for one that has nobody to tell anything.
    ``notes`` is where it leaves what needs no answer; None where all is answered.
    ``folder`` is its own, for what would otherwise overwrite the user's files. ``tests`` are the
    ids to run, None for all. ``first`` says that it is the first worker of the run, whose
    by-products (log files, durations) are the user's. ``cwd_on_path``: whether the user's pytest
    finds modules in the current folder. ``profiler`` is never AUTO: that was decided before. In a
    pass that is not its own, a profiler is OFF. ``versions`` is set where versions are compared.
    ``apart`` are tests that are known to start a profiled process: they are left to workers that
    run one of them ``alone``.
    """

    kind: PassKind
    descriptor: int | None
    folder: Path
    tests: tuple[str, ...] | None
    first: bool
    cwd_on_path: bool
    profiler: ProfilerKind = ProfilerKind.OFF
    versions: ComparedVersions | None = None
    notes: int | None = None
    apart: tuple[str, ...] = ()
    alone: bool = False
