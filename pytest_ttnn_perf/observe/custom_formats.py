"""Capture formats of other plugins and of conftest files, for ``attach`` and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, TtnnPerfError
from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.analysis.captures.detect import head_of
from pytest_ttnn_perf.records.observation import Artifact, MetricObservation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CaptureFormat:
    """A format of one's own, known by its content.

    ``recognises`` gets what the file begins with, unpacked if it is gzipped: all of it up to 256
    KiB. ``read`` gets the file, and returns what it tells of a test.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Artifact]

    def problem(self) -> str | None:
        """Say what is wrong with the format itself; None for nothing."""
        if not isinstance(self.name, str) or not self.name.strip():
            return f"a name is a non-empty string, found {self.name!r}"
        functions: tuple[tuple[str, object], ...] = (
            ("recognises", self.recognises),
            ("read", self.read),
        )
        for name, function in functions:
            if not callable(function):
                return f"{self.name}: {name} is a function, found {function!r}"
        return None


_formats: tuple[tuple[CaptureFormat, str], ...] = ()


def use_capture_formats(formats: Sequence[tuple[CaptureFormat, str]]) -> None:
    """Read these formats too, and no others than ours; each with the plugin that it is of."""
    global _formats  # noqa: PLW0603 (a process has one set of formats)
    _formats = tuple(formats)


def read_custom_format(file: Path) -> Artifact | None:
    """Return what a file of another plugin's format tells; None if none of them knows it.

    Nobody knows a file that is empty or cannot be read.

    Raises:
        InputError: several know it, or its reader failed.
    """
    if not _formats:
        return None
    try:
        head = head_of(file)
    except InputError:
        return None
    if not head:
        return None
    known = list(_recognised(file, head))
    if not known:
        return None
    if len(known) > 1:
        both = " and ".join(f"{known_format.name!r} (of {owner})" for known_format, owner in known)
        raise InputError(file, f"several formats recognise it: {both}")
    chosen, owner = known[0]
    reader = f"the reader of {chosen.name!r}, which is of {owner},"
    try:
        artifact: object = chosen.read(file)
    except TtnnPerfError:
        raise  # a sentence already
    except Exception as error:
        raise InputError(
            file, f"{reader} raised {type(error).__name__}: {text_of(error)}"
        ) from error
    if not isinstance(artifact, Artifact):
        found = type(artifact).__name__
        raise InputError(file, f"{reader} returned {found} instead of an Artifact")
    if not all(isinstance(metric, MetricObservation) for metric in artifact.metrics):
        raise InputError(file, f"{reader} returned metrics that are not made by capture_metric()")
    return artifact


def _recognised(file: Path, head: bytes) -> Iterator[tuple[CaptureFormat, str]]:
    for known_format, owner in _formats:
        try:
            matches = known_format.recognises(head)
        except Exception as error:
            problem = f"recognises() of {known_format.name!r}, which is of {owner}, raised"
            raise InputError(file, f"{problem} {type(error).__name__}: {text_of(error)}") from error
        if matches:
            yield known_format, owner
