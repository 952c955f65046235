"""What a worker is started for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.profile import ProfilerKind

if TYPE_CHECKING:
    from pathlib import Path


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
