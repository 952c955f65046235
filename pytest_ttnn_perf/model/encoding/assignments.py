"""Assignments of workers as plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.assignment import Apart, Assignment, PassKind
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
