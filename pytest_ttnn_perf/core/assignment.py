"""The assignment of a worker: its pass and its tests."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

from msgspec import Struct

from pytest_ttnn_perf.core.settings import ProfilerKind

#: Before and after each measured call under Tracy.
SIGNPOST_BEGIN: Final = "ttnn-perf begin"
SIGNPOST_END: Final = "ttnn-perf end"


def signposts_of(test: str, *, run: int, iteration: int) -> tuple[str, str]:
    """Return the signposts around a measured call of a run."""
    call = f"{run}.{iteration} {test}"
    return f"{SIGNPOST_BEGIN} {call}", f"{SIGNPOST_END} {call}"


class PassKind(Enum):
    """The passes over the tests of a run."""

    DEVICE = "device"
    WALL = "wall"
    CONFIRM = "confirm"
    CALIBRATE = "calibrate"
    AB = "ab"
    HOST = "host"


class ComparedVersions(Struct, frozen=True):
    """Two versions of a project; a worker tests its ``own``.

    Files below ``shared``, relative to either, may be the other's. ``settings`` is the folder whose
    configuration holds for the measurement; None for the worker's own root. ``receipts``: it is
    recorded how times are taken. ``checklist``: rules are asked.
    """

    own: Path
    other: Path
    shared: tuple[str, ...] = ()
    settings: Path | None = None
    receipts: bool = False
    checklist: bool = False


class Assignment(Struct, frozen=True):
    """One worker's task, in a file: ids may fit no command line.

    ``folder`` is for files that would otherwise overwrite the user's. ``tests`` are the ids to run,
    None for all. By-products of the ``first`` worker of a run (log files, durations) are the
    user's. ``cwd_on_path``: the user's pytest finds modules in the current folder. ``profiler`` is
    never AUTO, and OFF in a pass that is not its own. ``apart`` are tests that start a profiled
    process: they are left to workers that run one of them ``alone``. A worker that is ``shown``
    sends nothing without waiting for the answer, and one that another program launches (``batch``)
    has no orchestrator to send to.
    """

    kind: PassKind
    folder: Path
    tests: tuple[str, ...] | None
    first: bool
    cwd_on_path: bool
    profiler: ProfilerKind = ProfilerKind.OFF
    versions: ComparedVersions | None = None
    apart: tuple[str, ...] = ()
    alone: bool = False
    shown: bool = False
    batch: bool = False
