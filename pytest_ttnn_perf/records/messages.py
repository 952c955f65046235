"""What a worker tells its orchestrator, one message after another.

A report is pytest's own serialisation of it, which nothing here looks into but for the
observation it may carry.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf.records.settings import ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from pytest_ttnn_perf.records.codec import Value


#: The member of a serialised report, and the attribute of a report, that holds its observation.
OBSERVATION: Final = "ttnn_perf"


@dataclass(frozen=True, slots=True)
class Message:
    """Something that a worker says."""

    def document(self) -> dict[str, object]:
        """Return the message as plain JSON."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": type(self).__name__, **content}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the message of this kind that ``document`` holds.

        Raises:
            KeyError, TypeError: a field is missing, or not of its type.
        """
        content = {field.name: document[field.name] for field in fields(cls)}
        for field in fields(cls):
            _check(content[field.name], str(field.type))
        return cls(**content)


@dataclass(frozen=True, slots=True)
class Collected(Message):
    """The tests to come. ``measured`` is None where the worker only distributes them.

    ``baselines`` and ``confirm`` are what its options and configuration say, ``root`` is pytest's
    root folder; None for untold.
    """

    tests: list[str]
    measured: list[str] | None
    deselected: list[str]
    lines: list[str]
    baselines: str | None = None
    confirm: int | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Started(Message):
    """A test starts; ``location`` is file, line and name."""

    test: str
    location: list[Any]


@dataclass(frozen=True, slots=True)
class Reported(Message):
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


@dataclass(frozen=True, slots=True)
class CollectionReported(Message):
    """A file or class that could not be collected, or was skipped."""

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warned(Message):
    """A warning was recorded."""

    text: str
    category: str
    filename: str
    line: int
    when: str
    test: str
    location: list[Any] | None


@dataclass(frozen=True, slots=True)
class Opened(Message):
    """A device is opened; from now on its chips are this worker's."""


@dataclass(frozen=True, slots=True)
class Finished(Message):
    """A test is over, teardown included."""

    test: str
    location: list[Any]


@dataclass(frozen=True, slots=True)
class Refused(Message):
    """The worker found a mistake of the user's."""

    text: str


@dataclass(frozen=True, slots=True)
class Broke(Message):
    """The worker's pytest ended in an internal error."""

    text: str


@dataclass(frozen=True, slots=True)
class Stopped(Message):
    """A test or a plugin ended the worker's session; ``code`` is the exit code it asked for."""

    text: str
    code: int | None


@dataclass(frozen=True, slots=True)
class Strayed(Message):
    """Modules that are not of the version under test: the name and the file of each."""

    modules: list[Any]


@dataclass(frozen=True, slots=True)
class Ended(Message):
    """The last message of a worker that came to its end."""

    status: int


#: The types of fields, by their names in annotations; what lists and reports hold is not looked at.
_TYPES: Final[Mapping[str, type]] = {
    "str": str, "int": int, "list": list, "dict": dict, "None": type(None),
}  # fmt: skip
_KINDS: Final[Mapping[str, type[Message]]] = {
    kind.__name__: kind
    for kind in (
        Collected, Started, Reported, CollectionReported, Warned, Finished, Refused, Broke,
        Stopped, Ended, Opened, Strayed,
    )
}  # fmt: skip


def message_of(document: Any) -> Message:
    """Return the message that a document holds.

    Raises:
        DecodeError: it holds none; the stream is damaged.
    """
    try:
        message = _KINDS[document["kind"]].of(document)
        if isinstance(message, (Reported, CollectionReported)):
            _check(message.report["nodeid"], "str")
    except (KeyError, TypeError) as cause:
        raise DecodeError((), "a message of a worker", repr(document)[:80]) from cause
    return message


def _check(value: object, annotation: str) -> None:
    """Raise TypeError unless a value is of its field's type, such as ``list[str] | None``."""
    names = (name.partition("[")[0].strip() for name in annotation.split("|"))
    if not isinstance(value, tuple(_TYPES[name] for name in names)):
        message = f"expected {annotation}, found {type(value).__name__}"
        raise TypeError(message)


class PassKind(Enum):
    """The passes over the tests of a run."""

    DEVICE = "device"
    WALL = "wall"
    CONFIRM = "confirm"
    CALIBRATE = "calibrate"
    AB = "ab"


@dataclass(frozen=True, slots=True)
class Apart:
    """Two versions of one project: a worker runs the tests of its ``own`` and not the ``other``'s.

    What lies below ``shared``, relative to either, may be the other's. ``settings`` is the folder
    whose configuration holds for the measurement; None for that of the worker's own root.
    """

    own: Path
    other: Path
    shared: tuple[str, ...] = ()
    settings: Path | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One worker's task, which it reads from a file: thousands of ids fit no command line.

    ``descriptor`` is its end of the channel; None for one that has nobody to tell anything.
    ``folder`` is its own, for what would otherwise overwrite the user's files. ``tests`` are the
    ids to run, None for all. ``first`` says that it is the first worker of the run, whose
    by-products (log files, durations) are the user's. ``cwd_on_path``: whether the user's pytest
    finds modules in the current folder. ``profiler`` is never AUTO: that was decided before. In a
    pass that is not its own, a profiler is OFF. ``apart`` is set where versions are compared.
    """

    kind: PassKind
    descriptor: int | None
    folder: Path
    tests: tuple[str, ...] | None
    first: bool
    cwd_on_path: bool
    profiler: ProfilerKind = ProfilerKind.OFF
    apart: Apart | None = None


def encode_assignment(assignment: Assignment) -> dict[str, object]:
    """Encode an assignment as plain JSON."""
    return {
        "kind": assignment.kind.value,
        "descriptor": assignment.descriptor,
        "folder": str(assignment.folder),
        "tests": None if assignment.tests is None else list(assignment.tests),
        "first": assignment.first,
        "cwd_on_path": assignment.cwd_on_path,
        "profiler": assignment.profiler.value,
        "apart": None if assignment.apart is None else _encode_apart(assignment.apart),
    }


def _encode_apart(apart: Apart) -> dict[str, object]:
    return {
        "own": str(apart.own),
        "other": str(apart.other),
        "shared": list(apart.shared),
        "settings": None if apart.settings is None else str(apart.settings),
    }


def decode_assignment(value: Value) -> Assignment:
    """Decode an assignment."""
    tests, profiler = value.optional("tests"), value.optional("profiler")
    descriptor, apart = value.optional("descriptor"), value.optional("apart")
    return Assignment(
        kind=value.field("kind").one_of(PassKind),
        descriptor=descriptor.integer() if descriptor else None,
        folder=Path(value.field("folder").string()),
        tests=None if tests is None else tests.strings(),
        first=value.field("first").boolean(),
        cwd_on_path=value.field("cwd_on_path").boolean(),
        profiler=profiler.one_of(ProfilerKind) if profiler else ProfilerKind.OFF,
        apart=_decode_apart(apart) if apart else None,
    )


def _decode_apart(value: Value) -> Apart:
    settings = value.optional("settings")
    return Apart(
        own=Path(value.field("own").string()),
        other=Path(value.field("other").string()),
        shared=tuple(item.string() for item in value.field("shared").array()),
        settings=Path(settings.string()) if settings else None,
    )
