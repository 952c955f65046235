"""Groups of ops that changed alike, and how much an op varies when nothing has changed."""

from __future__ import annotations

import math
from dataclasses import field
from itertools import compress
from statistics import median_low
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.attribution import Cause, ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.ops import Signature


#: Between two replays of one trace (768 pairs of ops in seven captures of Blackhole chips) an op
#: differs by 0.9 % in the median, and by less than this sum in 96 of 100 cases, whether it takes
#: 1 µs or 1 ms. To ask for less than both 2 % and 1 µs would call 30 of 100 changed. The fraction
#: is also the gate's floor.
NOISE_FRACTION: Final = 0.02
NOISE_NS: Final = 250.0
#: Where most ops keep still, less than that is noise: so many times what the middle op changed by.
#: In those captures, one op in a hundred changed by more than 10 to 20 times as much.
_MEDIANS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a comparison: ``factor`` times the usual, at most 1."""

    factor: float = 1.0

    @classmethod
    def between(cls, times_ns: Sequence[tuple[float, float]]) -> Noise:
        """Return the noise of ops that nothing explains a change of: their times, two each."""
        if not times_ns:
            return cls()
        ratios = [abs(now - then) / _usual(then if then > now else now) for then, now in times_ns]
        return cls(min(1.0, _MEDIANS * median_low(ratios)))

    def covers(self, before_ns: float, after_ns: float, *, count: int = 1) -> bool:
        """Return whether so many ops, with these times in all, may differ by chance."""
        change = abs(after_ns - before_ns)
        each = _usual(max(before_ns, after_ns) / count)
        # Chance goes both ways: of n ops it adds up to √n, not n, times that of one.
        return not change or change < self.factor * math.sqrt(count) * each

    def ways(self, times_ns: Iterable[tuple[float, float]]) -> list[int]:
        """Return which way each op went: 1 got slower, -1 faster, 0 may have changed by chance."""
        factor = self.factor
        return [
            0
            if then == now or abs(now - then) < factor * _usual(then if then > now else now)
            else (1 if now > then else -1)
            for then, now in times_ns
        ]


def _usual(kernel_ns: float) -> float:
    return NOISE_NS + NOISE_FRACTION * kernel_ns


@dataclass(eq=False, slots=True)
class Kind:
    """What changes alike have in common; equal only to itself, so that it is found quickly.

    ``listed`` tells that the op came or went. ``signature`` is that of after, if there is one.
    """

    signature: Signature
    listed: ChangeKind | None = None
    causes: tuple[Cause, ...] = ()


class Batch(NamedTuple):
    """What became of ops of one kind on the devices of one ``lane``, which run alike.

    The units of an op are the sum over those devices; ``unit_ns`` makes them the time per device.
    Ops that came have none before, those that went none after.
    """

    kind: Kind
    before_units: Sequence[int]
    after_units: Sequence[int]
    unit_ns: float
    lane: int
    moved: bool = False

    @property
    def ops(self) -> int:
        """How many ops these are."""
        return len(self.before_units) or len(self.after_units)

    @property
    def times_ns(self) -> list[tuple[float, float]]:
        """The time of each op before and after, per device, if they have both."""
        unit_ns = self.unit_ns
        units = zip(self.before_units, self.after_units, strict=True)
        return [(before * unit_ns, after * unit_ns) for before, after in units]

    def where(self, chosen: Sequence[bool]) -> Batch:
        """Return the ops that are chosen, if they have both times."""
        before, after = compress(self.before_units, chosen), compress(self.after_units, chosen)
        return self._replace(before_units=list(before), after_units=list(after))


@dataclass(slots=True)
class Group:
    """Ops that changed alike."""

    kind: Kind
    before_units: int = 0
    after_units: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    moves: dict[int, int] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Add ops."""
        self.before_units += sum(batch.before_units)
        self.after_units += sum(batch.after_units)
        ops, lane = batch.ops, batch.lane
        self.counts[lane] = self.counts.get(lane, 0) + ops
        self.moves[lane] = self.moves.get(lane, 0) + (ops if batch.moved else 0)

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


def changed_groups(batches: Iterable[Batch], *, unit_ns: float) -> list[Group]:
    """Return the groups that changed by more than noise; ``unit_ns`` is a unit's mean per device.

    Ops that came or went always did. Ops with a cause are judged together: what is set up alike
    changes alike. Ops without one are judged each for itself: one of many may be the culprit.
    """
    listed: list[Batch] = []
    caused: list[Batch] = []
    bare: list[Batch] = []
    for batch in batches:
        matched = caused if batch.kind.causes else bare
        (listed if batch.kind.listed else matched).append(batch)
    noise = Noise.between([times for batch in bare for times in batch.times_ns])
    return [
        *_gathered(listed).values(),
        *(
            group
            for group in _gathered(caused).values()
            if not _is_noise([group], noise, unit_ns=unit_ns)
        ),
        *_culprits(bare, noise, unit_ns=unit_ns),
    ]


def _culprits(batches: Iterable[Batch], noise: Noise, *, unit_ns: float) -> Iterator[Group]:
    """Yield the ops that got slower or faster by themselves.

    Where some of a kind got slower and others faster, and it comes to nothing, that is noise.
    """
    ways: dict[int, list[Batch]] = {1: [], -1: [], 0: []}
    for batch in batches:
        went = noise.ways(batch.times_ns)
        for way in set(went):
            ways[way].append(batch.where([each == way for each in went]))
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


def _gathered(batches: Iterable[Batch]) -> dict[Kind, Group]:
    groups: dict[Kind, Group] = {}
    for batch in batches:
        group = groups.get(batch.kind)
        if group is None:
            group = groups[batch.kind] = Group(batch.kind)
        group.add(batch)
    return groups
