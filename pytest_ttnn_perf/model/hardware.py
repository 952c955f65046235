"""On what, and in which setting, a test ran: what decides whether two numbers may be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A value of a configuration or a fact.
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Hardware:
    """The physical system and the mesh that a test opened; ``mesh`` is None without a device."""

    arch: str
    board: str
    mesh: str | None = None

    @property
    def key(self) -> str:
        """The name that baselines are filed under.

        >>> Hardware("wormhole_b0", "n150", "1x1").key
        'wormhole_b0-n150-1x1'
        >>> Hardware("host", "x86_64").key
        'host-x86_64'
        """
        parts = (self.arch, self.board, self.mesh)
        return "-".join(part for part in parts if part is not None)


def member_name(enumerated: str) -> str:
    """Return how keys spell an architecture or a system that TTNN names by an enum's member.

    >>> member_name("ClusterType.P150_X4"), member_name("Arch.WORMHOLE_B0"), member_name("T3K")
    ('p150_x4', 'wormhole_b0', 't3k')
    """
    return enumerated.rpartition(".")[2].lower()


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings of the device and the model under which a test ran."""

    values: Mapping[str, Scalar] = field(default_factory=dict)

    def completed_by(self, facts: Mapping[str, Scalar]) -> Configuration:
        """Return this configuration with what the test's author stated added to it."""
        if not facts:
            return self
        return Configuration({**self.values, **facts})

    def first_difference(self, other: Configuration) -> tuple[str, Scalar, Scalar] | None:
        """Return the first field that differs, with both values; None for the same setting.

        A field that only one side has differs: an unknown setting is not the same setting.
        """
        if self.values == other.values:
            return None
        for name in sorted({*self.values, *other.values}):
            mine, theirs = self.values.get(name), other.values.get(name)
            if mine != theirs or (name in self.values) != (name in other.values):
                return name, mine, theirs
        return None


@dataclass(frozen=True, slots=True)
class Environment:
    """What was true of the host and the software during a run; recorded, never keyed on."""

    started_at: str | None = None
    python: str | None = None
    system: str | None = None
    cpu: str | None = None
    cpu_count: int | None = None
    memory_bytes: int | None = None
    load_1m: float | None = None
    governor: str | None = None
    host_hash: str | None = None
    pytest: str | None = None
    plugin: str | None = None
    numpy: str | None = None
    torch: str | None = None
    ttnn: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    runner: str | None = None

    @property
    def lasting(self) -> Mapping[str, Scalar]:
        """What does not change from one run to the next on a machine that is left alone."""
        named = {name: getattr(self, name) for name in _LASTING}
        return {name: value for name, value in named.items() if value is not None}


#: Not load, time or commit, which always differ; not ttnn, which is stored by itself.
_LASTING: Final = (
    "host_hash",
    "cpu",
    "cpu_count",
    "system",
    "governor",
    "python",
    "numpy",
    "torch",
)
