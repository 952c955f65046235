"""On what, and in which setting, a test ran: what decides whether two numbers may be compared."""

from __future__ import annotations

import posixpath
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.json import Coded, Omit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


#: What stands in a key for an architecture or a board that nothing tells.
UNKNOWN: Final = "unknown"
#: A value of a configuration or a fact.
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Hardware:
    """The physical system and the mesh that a test opened; ``mesh`` is None without a device.

    ``simulated``: a mock or a simulator stands in for it. ``host`` is the machine, where machines
    of one kind are told apart.
    """

    arch: str
    board: str
    mesh: Omit[str | None] = None
    simulated: Omit[bool] = False
    host: Omit[str | None] = None

    @classmethod
    def from_json(
        cls,
        arch: str,
        board: str,
        mesh: str | None = None,
        *,
        simulated: bool = False,
        host: str | None = None,
    ) -> Hardware:
        """Return hardware; an empty mesh or host means none."""
        return cls(arch, board, mesh or None, simulated, host or None)

    @classmethod
    def from_key(cls, key: str) -> Hardware | None:
        """Return the hardware of a key; None for what is no key.

        >>> Hardware.from_key("wormhole_b0-n150-1x1-host_lab7")
        Hardware(arch='wormhole_b0', board='n150', mesh='1x1', simulated=False, host='lab7')
        """
        found = _KEY.fullmatch(key)
        if found is None:
            return None
        arch, board, mesh, sim, host = found.groups()
        return cls(arch, board, mesh, sim is not None, host)

    @property
    def key(self) -> str:
        """The name that baselines are filed under.

        >>> Hardware("wormhole_b0", "n150", "1x1").key
        'wormhole_b0-n150-1x1'
        >>> Hardware("wormhole_b0", "n150", "1x1", simulated=True).key
        'wormhole_b0-n150-1x1-sim'
        >>> Hardware("host", "x86_64").key
        'host-x86_64'
        >>> Hardware("wormhole_b0", "n150", "1x1", host="lab7").key
        'wormhole_b0-n150-1x1-host_lab7'
        """
        simulated, host = "sim" if self.simulated else None, self.host and f"host_{self.host}"
        parts = (self.arch, self.board, self.mesh, simulated, host)
        return "-".join(part for part in parts if part is not None)


_KEY: Final = re.compile(
    r"([a-z]\w*)-([A-Za-z]\w*)(?:-([1-9][0-9]*(?:x[1-9][0-9]*)*))?(-sim)?(?:-host_([a-z0-9_]+))?",
    re.ASCII,
)


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


#: A configuration as a flat object of its values.
PlainConfiguration = Annotated[
    Configuration,
    Coded(
        lambda value: Configuration({name: item.scalar() for name, item in value.items()}),
        lambda configuration: dict(configuration.values),
    ),
]


@dataclass(frozen=True, slots=True)
class Environment:
    """What was true of the host and the software during a run; recorded, never keyed on.

    ``branch`` is what was checked out or, for a ``pull_request`` (its number or ref), what it came
    from. ``committed_at`` is when the commit was made, ``parents`` are the commits that it follows.
    ``attempt`` counts how often CI has started the same job, ``shard`` tells parts of a run apart.
    """

    started_at: Omit[str | None] = None
    python: Omit[str | None] = None
    system: Omit[str | None] = None
    cpu: Omit[str | None] = None
    cpu_count: Omit[int | None] = None
    memory_bytes: Omit[int | None] = None
    load_1m: Omit[float | None] = None
    governor: Omit[str | None] = None
    host_hash: Omit[str | None] = None
    pytest: Omit[str | None] = None
    plugin: Omit[str | None] = None
    numpy: Omit[str | None] = None
    torch: Omit[str | None] = None
    ttnn: Omit[str | None] = None
    commit: Omit[str | None] = None
    committed_at: Omit[str | None] = None
    parents: Omit[tuple[str, ...]] = ()
    branch: Omit[str | None] = None
    pull_request: Omit[str | None] = None
    dirty: Omit[bool | None] = None
    runner: Omit[str | None] = None
    attempt: Omit[int | None] = None
    shard: Omit[str | None] = None

    @property
    def lasting(self) -> Mapping[str, Scalar]:
        """What does not change from one run to the next on a machine that is left alone."""
        named = {name: getattr(self, name) for name in _LASTING}
        return {name: value for name, value in named.items() if value is not None}

    def shared_with(self, other: Environment) -> Environment:
        """Return this without what another shard of the run says otherwise of where it is from."""
        unlike = {name: None for name in _ORIGIN if getattr(self, name) != getattr(other, name)}
        parents = self.parents if self.parents == other.parents else ()
        dirty = True if self.dirty or other.dirty else self.dirty
        return replace(self, **unlike, parents=parents, dirty=dirty)


#: Where a run is from, and which part of it a record has.
_ORIGIN: Final = (
    "commit",
    "committed_at",
    "branch",
    "pull_request",
    "runner",
    "attempt",
    "shard",
)
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


@dataclass(frozen=True, slots=True)
class Build:
    """An installed ttnn; ``version`` is None where there is none.

    ``tracy`` and ``arch`` are None where they are not known: ``arch`` also where there is no
    hardware. ``problem`` says in one line why ttnn cannot be used. ``timed_out``: it was asked, and
    did not answer in time, so nothing is known of it.
    """

    version: str | None
    location: str | None = None
    tracy: bool | None = None
    arch: str | None = None
    problem: str | None = None
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A variable of the environment, or several joined by ``+``, with which no time means anything.

    ``why`` goes on from the variable: "makes kernels check themselves".
    """

    variable: str
    value: str
    why: str
    remedy: str

    @property
    def sentence(self) -> str:
        """What is set, and why it must not be."""
        several = " + " in self.variable  # the names say it all
        return f"{self.variable if several else f'{self.variable}={self.value}'} {self.why}"

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class CiJob:
    """What the variables of a CI system tell of a job; nothing outside of one.

    ``annotates``: it turns lines of the output into annotations, as GitHub does. ``step_summary``
    is the file that it shows beside the job. ``runner`` is the name of the machine. ``folder``
    leads from the repository's root to where test ids start. The job was started for ``commit``
    of ``branch``, or for a ``pull_request`` that comes from that branch. ``attempt`` and ``shard``
    are as in ``Environment``.
    """

    annotates: bool = False
    step_summary: Path | None = None
    runner: str | None = None
    folder: str = ""
    commit: str | None = None
    branch: str | None = None
    pull_request: str | None = None
    attempt: int | None = None
    shard: str | None = None

    def path(self, file: str) -> str:
        """Return a file as seen from the repository's root."""
        return posixpath.normpath(posixpath.join(self.folder, file))
