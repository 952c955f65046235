"""Which new test a missing one may have become, by their ops, metrics and names."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from pytest_ttnn_perf.records.baseline import Traits
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.ops import OpGroups


#: Less alike than this is another test. A tenth slower, with one op of ten exchanged, still is it.
LIKELY: Final = 0.8
#: Candidates that differ by less are equally near: noise between two runs moves them by as much.
_MARGIN: Final = 0.05
#: Beyond so many pairs, about a second's worth, nothing is guessed.
_MOST_PAIRS: Final = 40_000


def resemblance(ours: Traits, theirs: Traits) -> float:
    """Return how alike two tests are, from 0 to 1; the same in both directions.

    Ops count where both sides have them, and then both ops and numbers must be alike: two models
    may be equally fast, and one model may be run on inputs of two sizes.
    """
    return _Face.of(ours).like(_Face.of(theirs))


def pair_up(
    gone: Mapping[str, Traits],
    new: Mapping[str, Traits],
    *,
    hints: Mapping[str, Sequence[Hashable]],
) -> dict[str, str]:
    """Return for tests that are gone the new ones that they look like.

    Only where each is nearest to the other and no second one is equally near. Of several that are,
    the one that has a hint in common counts, the first hints first: a file that moves keeps the
    names of its tests, and a function that is renamed its parameters.
    """
    if len(gone) * len(new) > _MOST_PAIRS:
        return {}
    faces = {name: _Face.of(traits) for name, traits in new.items()}
    forward: defaultdict[str, dict[str, float]] = defaultdict(dict)
    backward: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for old, traits in gone.items():
        face = _Face.of(traits)
        for name, other in faces.items():
            score = face.like(other, at_least=LIKELY)
            if score >= LIKELY:
                forward[old][name] = backward[name][old] = score
    nearest = {old: _nearest(scores, hints, hints[old]) for old, scores in forward.items()}
    return {
        old: name
        for old, name in nearest.items()
        if name is not None and _nearest(backward[name], hints, hints[name]) == old
    }


def _nearest(
    scores: Mapping[str, float], hints: Mapping[str, Sequence[Hashable]], own: Sequence[Hashable]
) -> str | None:
    """Return the one candidate that is nearer than all others; None if several are as near."""
    best = max(scores.values())
    near = [name for name, score in scores.items() if best - score < _MARGIN]
    if len(near) == 1:
        return near[0]
    for place, hint in enumerate(own):
        same = [name for name in near if hints[name][place] == hint]
        if len(same) == 1:
            return same[0]
    return None


@dataclass(frozen=True, slots=True)
class _Face:
    """What is compared of a test, counted once."""

    values: Mapping[Metric, float]
    ops: Counter[Hashable] | None

    @classmethod
    def of(cls, traits: Traits) -> _Face:
        return cls(traits.values, None if traits.ops is None else _counts(traits.ops))

    def like(self, other: _Face, *, at_least: float = 0.0) -> float:
        """Return how alike two are; exact where the numbers alone are ``at_least`` so."""
        numbers = _numbers(self.values, other.values)
        if self.ops is None or other.ops is None or numbers < at_least:
            return numbers
        either = sum((self.ops | other.ops).values())
        return min(numbers, sum((self.ops & other.ops).values()) / either if either else 1.0)


def _counts(ops: OpGroups) -> Counter[Hashable]:
    counts: Counter[Hashable] = Counter()
    for group in ops.groups:
        counts[group.signature] += group.count
    return counts


def _numbers(ours: Mapping[Metric, float], theirs: Mapping[Metric, float]) -> float:
    """Return how near values are, on average over all metrics; one that a side lacks is not."""
    shared = ours.keys() & theirs.keys()
    if not shared:
        return 0.0
    near = sum(_near(ours[each], theirs[each]) for each in shared)
    return near / (len(ours) + len(theirs) - len(shared))


def _near(one: float, other: float) -> float:
    """Return the smaller as a part of the larger; nothing if they are on two sides of zero."""
    if one == other:
        return 1.0
    small, large = sorted((abs(one), abs(other)))
    return small / large if (one > 0) == (other > 0) else 0.0
