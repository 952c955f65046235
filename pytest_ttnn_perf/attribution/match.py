"""Which op of one sequence stands for which op of another."""

from __future__ import annotations

from collections import defaultdict, deque
from operator import ne
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.attribution.sequences import common_subsequence
from pytest_ttnn_perf.attribution.slide import NONE, next_run, slide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.attribution.catalogue import Catalogue
    from pytest_ttnn_perf.model.ops import Signature


class Matches(NamedTuple):
    """For each op before, the place of the op after that stands for it, or NONE.

    ``moved`` has those, by their places, that ``to`` leaves out as they do not keep the order.
    """

    to: list[int]
    moved: dict[int, int]


def match(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> Matches:
    """Match two sequences of variants; what is in no match was removed or added.

    An op is the same where code and padded shapes are and the order of ops is kept: whatever else
    differs is a cause. Between such matches, equal logical shapes are enough (another layout pads
    otherwise), then equal shapes of what goes in and comes out first (an operand more). Of what is
    left, ops with the very same operands have moved; and between the matches, shapes may differ in
    one dimension (another batch or length).

    Both directions give the same matches: a search that starts from the other side may settle a tie
    in another way, so the two sequences are always searched in the same order.
    """
    if _in_order(before, after, catalogue):
        return _matched(before, after, catalogue)
    to, moved = _matched(after, before, catalogue)
    return Matches(_inverted(to, len(before)), {ours: theirs for theirs, ours in moved.items()})


def _in_order(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> bool:
    variants = catalogue.variants
    for ours, theirs in zip(before, after, strict=False):
        if ours != theirs:
            return repr(variants[ours]) < repr(variants[theirs])
    return len(before) <= len(after)


def _matched(a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> Matches:
    alike = catalogue.alike
    to = [NONE] * len(a)
    _fill(to, a, b, alike.padded)
    if NONE not in to and len(a) == len(b):
        return Matches(to, {})
    slide(to, a, b, catalogue)
    back = _inverted(to, len(b))
    slide(back, b, a, catalogue)
    to = _inverted(back, len(a))
    kinds = set(a), set(b)
    for way in (alike.logical, alike.ends):
        if _share(*kinds, way):
            _fill(to, a, b, way)
    moved = _moved(to, a, b, alike.exact) if _share(*kinds, alike.exact) else {}
    _fill_resized(to, moved, a, b, catalogue=catalogue)
    return Matches(to, moved)


def _inverted(to: Sequence[int], length: int) -> list[int]:
    back = [NONE] * length
    for i, j in enumerate(to):
        if j != NONE:
            back[j] = i
    return back


def _fill(to: list[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]) -> None:
    """Match what is alike in another way between two matches."""
    run = next_run(to, 0)
    while run:
        start, end = run
        other = to[start - 1] + 1 if start else 0
        other_end = to[end] if end < len(to) else len(b)
        if other < other_end:
            ours = [alike[variant] for variant in a[start:end]]
            theirs = [alike[variant] for variant in b[other:other_end]]
            for x, y in common_subsequence(ours, theirs):
                to[start + x] = other + y
        run = next_run(to, end)


def _share(ours: set[int], theirs: set[int], alike: Sequence[int]) -> bool:
    """Return whether any variants are alike; they are few, so that is known at once."""
    numbers = {alike[variant] for variant in ours}
    return not numbers.isdisjoint(alike[variant] for variant in theirs)


def _moved(
    to: Sequence[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]
) -> dict[int, int]:
    """Match what is left and alike, whatever its place, in the order of its places."""
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for j in sorted(set(range(len(b))).difference(to)):
        waiting[alike[b[j]]].append(j)
    return {
        i: places.popleft()
        for i, j in enumerate(to)
        if j == NONE and (places := waiting.get(alike[a[i]]))
    }


def _fill_resized(
    to: list[int],
    moved: Mapping[int, int],
    a: Sequence[int],
    b: Sequence[int],
    *,
    catalogue: Catalogue,
) -> None:
    """Match what is left between two matches and differs in one dimension."""
    ours, theirs, filled = list(a), list(b), to.copy()
    for i, j in moved.items():
        ours[i], theirs[j] = -1, -2  # the last two numbers: like nothing
    _fill(filled, ours, theirs, [*catalogue.alike.code, -1, -2])
    variants, formats = catalogue.variants, catalogue.alike.format
    for i, j in enumerate(filled):
        if (
            to[i] != j
            and formats[a[i]] == formats[b[j]]
            and _nearly(variants[a[i]].signature, variants[b[j]].signature)
        ):
            to[i] = j


def _nearly(ours: Signature, theirs: Signature) -> bool:
    """Return whether operands of the same formats differ in one dimension each."""
    pairs = zip(ours.inputs + ours.outputs, theirs.inputs + theirs.outputs, strict=True)
    return all(sum(map(ne, then.padded, now.padded)) <= 1 for then, now in pairs)
