"""Assignments of workers as plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.assignment import Assignment, PassKind
from pytest_ttnn_perf.model.profile import ProfilerKind

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.encoding.value import Value


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
    }


def decode_assignment(value: Value) -> Assignment:
    """Decode an assignment."""
    tests, profiler = value.optional("tests"), value.optional("profiler")
    descriptor = value.optional("descriptor")
    return Assignment(
        kind=value.field("kind").one_of(PassKind),
        descriptor=descriptor.integer() if descriptor else None,
        folder=Path(value.field("folder").string()),
        tests=None if tests is None else tests.strings(),
        first=value.field("first").boolean(),
        cwd_on_path=value.field("cwd_on_path").boolean(),
        profiler=profiler.one_of(ProfilerKind) if profiler else ProfilerKind.OFF,
    )
