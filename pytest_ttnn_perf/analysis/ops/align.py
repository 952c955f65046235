"""The change between two op tables, attributed to ops."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import field
from functools import cache
from itertools import compress
from statistics import median_low
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.ops.catalogue import Catalogue
from pytest_ttnn_perf.analysis.ops.causes import causes_between
from pytest_ttnn_perf.analysis.ops.conversions import between_text, is_conversion, neighbours
from pytest_ttnn_perf.analysis.ops.lanes import Lane, lanes_of, middle_lanes
from pytest_ttnn_perf.analysis.ops.match import NONE, Pairing, Strand, match, pair_strands
from pytest_ttnn_perf.analysis.ops.names import (
    calling_shape,
    op_and_function,
    op_name,
    operands_text,
)
from pytest_ttnn_perf.records.attribution import Attribution, Cause, ChangeKind, Part
from pytest_ttnn_perf.records.region import Basis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.catalogue import Variant
    from pytest_ttnn_perf.records.ops import OpTable, Signature
    from pytest_ttnn_perf.records.region import Region


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

    ``listed`` tells that the op came or went. ``variant`` is that of after, if there is one;
    ``name`` what people call it, ``beside`` between which ops it stands.
    """

    variant: Variant
    name: str
    beside: str
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
        *_group_batches(listed).values(),
        *(
            group
            for group in _group_batches(caused).values()
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
    slower, faster, still = (_group_batches(group) for group in ways.values())
    for kind in {**slower, **faster}:
        every = [groups[kind] for groups in (slower, faster, still) if kind in groups]
        both_ways = kind in slower and kind in faster
        if not (both_ways and _is_noise(every, noise, unit_ns=unit_ns)):
            yield from (groups[kind] for groups in (slower, faster) if kind in groups)


def _is_noise(groups: Sequence[Group], noise: Noise, *, unit_ns: float) -> bool:
    before = sum(group.before_units for group in groups) * unit_ns
    after = sum(group.after_units for group in groups) * unit_ns
    return noise.covers(before, after, count=sum(group.count for group in groups))


def _group_batches(batches: Iterable[Batch]) -> dict[Kind, Group]:
    groups: dict[Kind, Group] = {}
    for batch in batches:
        group = groups.get(batch.kind)
        if group is None:
            group = groups[batch.kind] = Group(batch.kind)
        group.add(batch)
    return groups


class Fates:
    """Tells what became of the ops of pairings; like changes are of the same kind.

    In strands that are not ``ordered`` no op stands beside another.
    """

    def __init__(self, catalogue: Catalogue, *, ordered: bool) -> None:
        self._catalogue = catalogue
        self._ordered = ordered
        self._kinds: dict[object, Kind] = {}

    def of(self, pairing: Pairing, *, lane: int, unit_ns: float) -> Iterator[Batch]:
        """Yield what became of all ops; ``unit_ns`` is what a unit is on one device."""
        per_device_ns = unit_ns / pairing.weight
        before, after = pairing.before, pairing.after
        to, moved = match(before.variants, after.variants, self._catalogue)
        kept = {i: j for i, j in enumerate(to) if j != NONE}
        for places in (kept, moved):
            for kind, ours, theirs in self._changed(pairing, places):
                yield Batch(kind, ours, theirs, per_device_ns, lane, moved=places is moved)
        gone = set(range(len(before.variants))).difference(kept, moved)
        come = set(range(len(after.variants))).difference(kept.values(), moved.values())
        for kind, units in self._listed(before, gone, ChangeKind.REMOVED):
            yield Batch(kind, units, (), per_device_ns, lane)
        for kind, units in self._listed(after, come, ChangeKind.ADDED):
            yield Batch(kind, (), units, per_device_ns, lane)

    def _changed(
        self, pairing: Pairing, places: Mapping[int, int]
    ) -> Iterator[tuple[Kind, Sequence[int], Sequence[int]]]:
        """Yield the kinds of matched ops, with their times before and after."""
        before, after = pairing.before, pairing.after
        by_variants: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for i, j in places.items():
            variants = (before.variants[i], after.variants[j])
            by_variants[variants].append((before.units[i], after.units[j]))
        for (one, other), units in by_variants.items():
            ours, theirs = self._catalogue.variants[one], self._catalogue.variants[other]
            causes = causes_between(ours, theirs)
            kind = self._kind(theirs, None, causes, before=ours.signature)
            before_units, after_units = zip(*units, strict=True)
            yield kind, before_units, after_units

    def _kind(
        self,
        variant: Variant,
        listed: ChangeKind | None,
        causes: tuple[Cause, ...],
        *,
        before: Signature | None = None,
        beside: str = "",
    ) -> Kind:
        """Return the kind that all changes like this one share."""
        name = op_name(variant.signature, variant.attributes)
        key = (before, variant.signature, name, beside, listed, causes)
        return self._kinds.setdefault(key, Kind(variant, name, beside, listed, causes))

    def _listed(
        self, strand: Strand, places: Iterable[int], change: ChangeKind
    ) -> Iterator[tuple[Kind, list[int]]]:
        """Yield the kinds of ops without a match, with their times.

        The cause is how many of an op there are on its side, and how many of them have a match.
        """
        by_variant: defaultdict[int, list[int]] = defaultdict(list)
        variants, units_of = strand
        for place in places:
            by_variant[variants[place]].append(place)
        if not by_variant:
            return
        exact = self._catalogue.alike.exact
        present = Counter(map(exact.__getitem__, variants))
        matched = present.copy()
        for variant, own in by_variant.items():
            matched[exact[variant]] -= len(own)
        for variant, own in by_variant.items():
            counts = str(present[exact[variant]]), str(matched[exact[variant]])
            cause = Cause("count", *(counts if change is ChangeKind.REMOVED else counts[::-1]))
            beside = self._beside(own, variants)
            kind = self._kind(self._catalogue.variants[variant], change, (cause,), beside=beside)
            yield kind, [units_of[place] for place in own]

    def _beside(self, places: Sequence[int], variants: Sequence[int]) -> str:
        """Say between which ops conversions of one kind stand; of other ops, nothing."""
        known = self._catalogue.variants
        if not self._ordered or not is_conversion(known[variants[places[0]]].signature.op):
            return ""

        def name_at(at: int | None) -> str | None:
            if at is None:
                return None
            return op_and_function(known[variants[at]].signature.op, known[variants[at]].attributes)

        def signature_at(at: int) -> Signature:
            return known[variants[at]].signature

        found = (neighbours(place, len(variants), signature_at) for place in sorted(places))
        return between_text(Counter(tuple(map(name_at, pair)) for pair in found))


#: The format of a table of which only groups are known: its ops have no order.
GROUPED: Final = "grouped"
#: Times are counted in units of 2⁻¹⁰ ns, finer than any capture tells them ...
_FINEST: Final = -10
#: ... or in coarser ones, if the sum of all would need more bits than a float adds up exactly.
_EXACT_BITS: Final = 52


def attribute(
    before: OpTable, after: OpTable, regions: tuple[Region, Region] | None = None
) -> Attribution:
    """Attribute the change of the kernel time from one capture to another; times are finite.

    Of ``regions``, the middle step on its slowest device is compared, which is what their times are
    of. Without any, the totals are those of the whole captures: several devices are compared each
    with its counterpart, by ascending number, and then averaged; of a trace, one replay is compared
    with one, each of whose ops takes the median of the complete replays. Ops that fell back to the
    host are compared, but take no kernel time.

    Parts and ``unexplained_ns`` add up to the change exactly, as floats and in any order. Swapping
    the tables negates all of them.
    """
    (our_lanes, our_host), (their_lanes, their_host) = _compared(before, after, regions)
    total_ns = sum(sum(lane.kernel_ns) for lane in (*our_lanes, *their_lanes))
    unit_ns = 2.0 ** max(_FINEST, math.frexp(total_ns)[1] - _EXACT_BITS)
    catalogue = Catalogue()

    def strands(table: OpTable, lanes: Iterable[Lane]) -> list[Strand]:
        variant_of = catalogue.numbered(table).__getitem__
        return [
            Strand(
                tuple(map(variant_of, lane.rows)), [round(ns / unit_ns) for ns in lane.kernel_ns]
            )
            for lane in lanes
        ]

    *ours, our_fallbacks = strands(before, [*our_lanes, our_host])
    *theirs, their_fallbacks = strands(after, [*their_lanes, their_host])
    pairings, whole = pair_strands(ours, theirs)
    fates = Fates(catalogue, ordered=GROUPED not in {before.format, after.format})
    every = [*pairings, Pairing(our_fallbacks, their_fallbacks, whole)]
    batches = [
        batch
        for lane, pairing in enumerate(every)
        for batch in fates.of(pairing, lane=lane, unit_ns=unit_ns)
    ]
    groups = changed_groups(batches, unit_ns=unit_ns / whole)

    def mean_ns(units: int) -> float:
        # To the nearest unit, halves to the even one: so the sign makes no difference.
        nearest, rest = divmod(units, whole)
        return (nearest + (2 * rest + nearest % 2 > whole)) * unit_ns

    before_ns = mean_ns(sum(sum(pairing.before.units) for pairing in pairings))
    after_ns = mean_ns(sum(sum(pairing.after.units) for pairing in pairings))
    parts = sorted(_parts(groups, mean_ns), key=_rank)
    return Attribution(
        before_ns,
        after_ns,
        tuple(parts),
        (after_ns - before_ns) - sum(part.delta_ns for part in parts),
        devices=(len(before.devices) or 1, len(after.devices) or 1),
        replayed=_is_replayed(before, after, regions),
        unexplained_ops=_others(batches, groups),
        region=None if regions is None else regions[1].name,
    )


def _others(batches: Iterable[Batch], groups: Iterable[Group]) -> int:
    """Return how many ops are in no group, on the device where they are most."""
    counts: Counter[int] = Counter()
    for batch in batches:
        counts[batch.lane] += batch.ops
    for group in groups:
        counts.subtract(group.counts)
    return max(counts.values(), default=0)


def _compared(
    before: OpTable, after: OpTable, regions: tuple[Region, Region] | None
) -> list[tuple[tuple[Lane, ...], Lane]]:
    """Return the ops of devices and of the host that are compared, before and after."""
    if regions is None:
        return [lanes_of(before), lanes_of(after)]
    pairs = zip((before, after), regions, strict=True)
    return [(middle_lanes(table, region), Lane()) for table, region in pairs]


def _is_replayed(before: OpTable, after: OpTable, regions: tuple[Region, Region] | None) -> bool:
    if regions is not None:
        return any(region.basis is Basis.REPLAYS for region in regions)
    return any(set(table.columns.replay) - {None} for table in (before, after))


def _parts(groups: Iterable[Group], mean_ns: Callable[[int], float]) -> Iterator[Part]:
    operands_of = cache(operands_text)  # many parts may be of one op
    for group in groups:
        signature, _, _, attributes = group.kind.variant
        yield Part(
            group.change,
            signature.op,
            operands_of(signature),
            group.count,
            mean_ns(group.delta_units),
            group.kind.causes,
            max(group.moves.values()),
            calling_shape(signature, attributes),
            mean_ns(group.before_units),
            group.kind.name,
            group.kind.beside,
        )


def _rank(part: Part) -> tuple[object, ...]:
    """Order by size; what is of the same size by its name, so that the order is always the same."""
    causes = [str(cause) for cause in part.causes]
    return (
        -abs(part.delta_ns),
        part.change.value,
        part.op,
        part.name,
        part.beside,
        part.signature,
        causes,
    )
