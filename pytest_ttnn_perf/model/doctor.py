"""What a machine can measure, and what stands in its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.build import Build


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process that has a chip open."""

    chip: int
    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What a host tells about itself and its chips, with no chip touched; None is unknown.

    ``tenants_known`` is false where processes of other users cannot be seen. ``locked`` and
    ``dirty`` are the files by which tt-metal's run_safe_pytest.sh says that it uses the devices,
    and that they were left in a state which needs a reset.
    """

    devices: tuple[int, ...]
    governor: str | None
    iommu: bool | None
    hugepages: int | None
    driver: str | None
    tenants: tuple[Tenant, ...]
    tenants_known: bool
    kernel_cache: Path
    kernels_cached: bool
    locked: Path | None = None
    dirty: Path | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``ok`` is None where it could not be told.

    ``blocks`` says that a gate would fail here for it; others only make it worse.
    """

    name: str
    ok: bool | None
    found: str
    remedy: str | None = None
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``key`` is None where the hardware could not be told; ``profiler`` is what auto chooses."""

    key: str | None
    build: Build
    profiler: str
    checks: tuple[Check, ...]

    @property
    def fit(self) -> bool:
        """Whether a gate could run here."""
        return not any(check.blocks and check.ok is False for check in self.checks)
