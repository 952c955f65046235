"""What became of each op: matched, with what it changed in, or removed, or added."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.attribution.causes import causes_between
from pytest_ttnn_perf.attribution.group import Fate, Kind
from pytest_ttnn_perf.attribution.match import match
from pytest_ttnn_perf.model.attribution import Cause, ChangeKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.attribution.catalogue import Catalogue
    from pytest_ttnn_perf.attribution.pairing import Pairing
    from pytest_ttnn_perf.model.ops import Signature


class _Listed(NamedTuple):
    """An op without a match: how many of it there are on its side, and how many have one."""

    place: int
    signature: Signature
    present: str
    matched: str


class Fates:
    """Tells what became of the ops of pairings; like changes are of the same kind."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._kinds: dict[object, Kind] = {}
        self._matched: dict[tuple[int, int], Kind] = {}

    def of(self, pairing: Pairing, *, lane: int, unit_ns: float) -> Iterator[Fate]:
        """Yield what became of each op; ``unit_ns`` is what a unit is on one device."""
        per_device_ns = unit_ns / pairing.weight
        before, after = pairing.before, pairing.after
        gone, come = set(range(len(before.variants))), set(range(len(after.variants)))
        for i, j, moved in match(before.variants, after.variants, self._catalogue):
            gone.discard(i)
            come.discard(j)
            kind = self._matched_kind(before.variants[i], after.variants[j])
            yield Fate(kind, before.units[i], after.units[j], per_device_ns, lane, moved)
        for op in self._listed(before.variants, sorted(gone)):
            cause = Cause("count", op.present, op.matched)
            kind = self._shared(Kind(op.signature, ChangeKind.REMOVED, (cause,)))
            yield Fate(kind, before.units[op.place], 0, per_device_ns, lane)
        for op in self._listed(after.variants, sorted(come)):
            cause = Cause("count", op.matched, op.present)
            kind = self._shared(Kind(op.signature, ChangeKind.ADDED, (cause,)))
            yield Fate(kind, 0, after.units[op.place], per_device_ns, lane)

    def _matched_kind(self, before: int, after: int) -> Kind:
        kind = self._matched.get((before, after))
        if kind is None:
            ours, theirs = self._catalogue.variants[before], self._catalogue.variants[after]
            kind = Kind(theirs.signature, None, causes_between(ours, theirs))
            kind = self._matched[before, after] = self._shared(kind, before=ours.signature)
        return kind

    def _shared(self, kind: Kind, *, before: Signature | None = None) -> Kind:
        """Return the kind that all changes like this one share."""
        key = (before, kind.signature, kind.listed, kind.causes)
        return self._kinds.setdefault(key, kind)

    def _listed(self, variants: Sequence[int], places: Sequence[int]) -> Iterator[_Listed]:
        if not places:
            return
        exact = [self._catalogue.likenesses[variant].exact for variant in variants]
        counts = Counter(exact)
        unmatched = Counter(exact[place] for place in places)
        for place in places:
            present = counts[exact[place]]
            matched = present - unmatched[exact[place]]
            signature = self._catalogue.variants[variants[place]].signature
            yield _Listed(place, signature, str(present), str(matched))
