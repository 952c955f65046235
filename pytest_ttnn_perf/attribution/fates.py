"""What became of the ops: matched, with what they changed in, or removed, or added."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from pytest_ttnn_perf.attribution.causes import causes_between
from pytest_ttnn_perf.attribution.group import Batch, Kind
from pytest_ttnn_perf.attribution.match import match
from pytest_ttnn_perf.attribution.slide import NONE
from pytest_ttnn_perf.model.attribution import Cause, ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.attribution.catalogue import Catalogue
    from pytest_ttnn_perf.attribution.pairing import Pairing, Strand
    from pytest_ttnn_perf.model.ops import Signature


class Fates:
    """Tells what became of the ops of pairings; like changes are of the same kind."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
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
            kind = self._kind(theirs.signature, None, causes, before=ours.signature)
            before_units, after_units = zip(*units, strict=True)
            yield kind, before_units, after_units

    def _kind(
        self,
        signature: Signature,
        listed: ChangeKind | None,
        causes: tuple[Cause, ...],
        *,
        before: Signature | None = None,
    ) -> Kind:
        """Return the kind that all changes like this one share."""
        key = (before, signature, listed, causes)
        return self._kinds.setdefault(key, Kind(signature, listed, causes))

    def _listed(
        self, strand: Strand, places: Iterable[int], change: ChangeKind
    ) -> Iterator[tuple[Kind, list[int]]]:
        """Yield the kinds of ops without a match, with their times.

        The cause is how many of an op there are on its side, and how many of them have a match.
        """
        by_variant: defaultdict[int, list[int]] = defaultdict(list)
        variants, units_of = strand
        for place in places:
            by_variant[variants[place]].append(units_of[place])
        if not by_variant:
            return
        exact = self._catalogue.alike.exact
        present = Counter(map(exact.__getitem__, variants))
        matched = present.copy()
        for variant, units in by_variant.items():
            matched[exact[variant]] -= len(units)
        for variant, units in by_variant.items():
            counts = str(present[exact[variant]]), str(matched[exact[variant]])
            cause = Cause("count", *(counts if change is ChangeKind.REMOVED else counts[::-1]))
            signature = self._catalogue.variants[variant].signature
            yield self._kind(signature, change, (cause,)), units
