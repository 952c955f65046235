"""Ops that changed alike, gathered; in whole units of time, so that nothing is rounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.attribution.noise import Noise
from pytest_ttnn_perf.model.attribution import Cause, ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.model.ops import Signature


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """What changes alike have in common; equal only to itself, so that it is found quickly.

    ``listed`` tells that the op came or went. ``signature`` is that of after, if there is one.
    """

    signature: Signature
    listed: ChangeKind | None = None
    causes: tuple[Cause, ...] = ()


class Fate(NamedTuple):
    """What became of one op on the devices of one ``lane``, which run alike.

    The units are the sum over those devices; ``unit_ns`` makes them the time per device.
    """

    kind: Kind
    before_units: int
    after_units: int
    unit_ns: float
    lane: int
    moved: bool = False

    @property
    def times_ns(self) -> tuple[float, float]:
        """The time before and after, per device."""
        return self.before_units * self.unit_ns, self.after_units * self.unit_ns


@dataclass(slots=True)
class Group:
    """Ops that changed alike."""

    kind: Kind
    before_units: int = 0
    after_units: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    moves: Counter[int] = field(default_factory=Counter)

    def add(self, fate: Fate) -> None:
        """Add an op."""
        self.before_units += fate.before_units
        self.after_units += fate.after_units
        self.counts[fate.lane] += 1
        self.moves[fate.lane] += fate.moved

    @property
    def change(self) -> ChangeKind:
        """What became of them."""
        by_time = ChangeKind.SLOWER if self.delta_units > 0 else ChangeKind.FASTER
        return self.kind.listed or by_time

    @property
    def delta_units(self) -> int:
        """By how much they changed."""
        return self.after_units - self.before_units

    @property
    def count(self) -> int:
        """How many there are on a device, where they are most."""
        return max(self.counts.values())


def changed_groups(fates: Iterable[Fate], *, unit_ns: float) -> list[Group]:
    """Return the groups that changed by more than noise; ``unit_ns`` is a unit's mean per device.

    Ops that came or went always did. Ops with a cause are judged together: what is set up alike
    changes alike. Ops without one are judged each for itself: one of many may be the culprit.
    """
    listed: list[Fate] = []
    caused: list[Fate] = []
    bare: list[Fate] = []
    for fate in fates:
        matched = caused if fate.kind.causes else bare
        (listed if fate.kind.listed else matched).append(fate)
    noise = Noise.between([fate.times_ns for fate in bare])
    return [
        *_gathered(listed).values(),
        *(
            group
            for group in _gathered(caused).values()
            if not _is_noise([group], noise, unit_ns=unit_ns)
        ),
        *_culprits(bare, noise, unit_ns=unit_ns),
    ]


def _culprits(fates: Iterable[Fate], noise: Noise, *, unit_ns: float) -> Iterator[Group]:
    """Yield the ops that got slower or faster by themselves.

    Where some of a kind got slower and others faster, and it comes to nothing, that is noise.
    """
    ways: dict[int, list[Fate]] = {1: [], -1: [], 0: []}
    for fate in fates:
        before, after = fate.times_ns
        ways[0 if noise.covers(before, after) else 1 if after > before else -1].append(fate)
    slower, faster, still = (_gathered(group) for group in ways.values())
    for kind in {**slower, **faster}:
        every = [groups[kind] for groups in (slower, faster, still) if kind in groups]
        both_ways = kind in slower and kind in faster
        if not (both_ways and _is_noise(every, noise, unit_ns=unit_ns)):
            yield from (groups[kind] for groups in (slower, faster) if kind in groups)


def _is_noise(groups: Sequence[Group], noise: Noise, *, unit_ns: float) -> bool:
    before = sum(group.before_units for group in groups) * unit_ns
    after = sum(group.after_units for group in groups) * unit_ns
    return noise.covers(before, after, count=sum(group.count for group in groups))


def _gathered(fates: Iterable[Fate]) -> dict[Kind, Group]:
    groups: dict[Kind, Group] = {}
    for fate in fates:
        group = groups.get(fate.kind)
        if group is None:
            group = groups[fate.kind] = Group(fate.kind)
        group.add(fate)
    return groups
