"""Assignments of workers as plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.assignment import Assignment, PassKind

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
    }


def decode_assignment(value: Value) -> Assignment:
    """Decode an assignment."""
    tests = value.optional("tests")
    return Assignment(
        kind=value.field("kind").one_of(PassKind),
        descriptor=value.field("descriptor").integer(),
        folder=Path(value.field("folder").string()),
        tests=None if tests is None else tuple(item.string() for item in tests.array()),
        first=value.field("first").boolean(),
        cwd_on_path=value.field("cwd_on_path").boolean(),
    )
