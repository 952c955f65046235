"""Which op of one sequence stands for which op of another."""

from __future__ import annotations

from collections import defaultdict, deque
from operator import ne
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.attribution.sequences import common_subsequence
from pytest_ttnn_perf.attribution.slide import NONE, slide

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.attribution.catalogue import Catalogue
    from pytest_ttnn_perf.model.ops import Signature


class Match(NamedTuple):
    """An op before and the op after that stands for it, by their places."""

    before: int
    after: int
    moved: bool = False


def match(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> list[Match]:
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
    found = _matched(after, before, catalogue)
    return sorted(Match(theirs, ours, moved) for ours, theirs, moved in found)


def _in_order(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> bool:
    variants = catalogue.variants
    for ours, theirs in zip(before, after, strict=False):
        if ours != theirs:
            return repr(variants[ours]) < repr(variants[theirs])
    return len(before) <= len(after)


def _matched(a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> list[Match]:
    alike = catalogue.likenesses
    ours, theirs = [alike[v].padded for v in a], [alike[v].padded for v in b]
    to = [NONE] * len(a)
    for i, j in common_subsequence(ours, theirs):
        to[i] = j
    slide(to, a, b, catalogue)
    back = _inverted(to, len(b))
    slide(back, b, a, catalogue)
    to = _inverted(back, len(a))
    _fill(to, [alike[v].logical for v in a], [alike[v].logical for v in b])
    _fill(to, [alike[v].ends for v in a], [alike[v].ends for v in b])
    matches = [Match(i, j) for i, j in _places(to)]
    if len(matches) == min(len(a), len(b)):
        return matches
    moved = _moved(to, [alike[v].exact for v in a], [alike[v].exact for v in b])
    resized = _resized(to, moved, a, b, catalogue=catalogue)
    return sorted([*matches, *moved, *resized])


def _inverted(to: Sequence[int], length: int) -> list[int]:
    back = [NONE] * length
    for i, j in enumerate(to):
        if j != NONE:
            back[j] = i
    return back


def _places(to: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((i, j) for i, j in enumerate(to) if j != NONE)


def _fill(to: list[int], ours: Sequence[int], theirs: Sequence[int]) -> None:
    """Match what is equal in another way between two matches."""
    start = other = 0
    for i, j in [*_places(to), (len(ours), len(theirs))]:
        if start < i and other < j:
            for x, y in common_subsequence(ours[start:i], theirs[other:j]):
                to[start + x] = other + y
        start, other = i + 1, j + 1


def _moved(to: Sequence[int], ours: Sequence[int], theirs: Sequence[int]) -> list[Match]:
    """Match what is left and equal, whatever its place, in the order of its places."""
    taken = {j for j in to if j != NONE}
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for j, number in enumerate(theirs):
        if j not in taken:
            waiting[number].append(j)
    return [
        Match(i, waiting[number].popleft(), moved=True)
        for i, number in enumerate(ours)
        if to[i] == NONE and waiting.get(number)
    ]


def _resized(
    to: Sequence[int],
    moved: Sequence[Match],
    a: Sequence[int],
    b: Sequence[int],
    *,
    catalogue: Catalogue,
) -> list[Match]:
    """Match what is left between two matches and differs in one dimension."""
    ours = [catalogue.likenesses[variant].code for variant in a]
    theirs = [catalogue.likenesses[variant].code for variant in b]
    for i, j, _ in moved:
        ours[i], theirs[j] = -1, -2  # equal to nothing
    filled = list(to)
    _fill(filled, ours, theirs)
    variants = catalogue.variants
    return [
        Match(i, j)
        for i, j in _places(filled)
        if to[i] == NONE and _nearly(variants[a[i]].signature, variants[b[j]].signature)
    ]


def _nearly(ours: Signature, theirs: Signature) -> bool:
    """Return whether operands differ in one dimension each, and in no format."""
    if len(ours.inputs) != len(theirs.inputs) or len(ours.outputs) != len(theirs.outputs):
        return False
    pairs = zip(ours.inputs + ours.outputs, theirs.inputs + theirs.outputs, strict=True)
    return all(
        (then.dtype, then.layout, len(then.padded)) == (now.dtype, now.layout, len(now.padded))
        and sum(map(ne, then.padded, now.padded)) <= 1
        for then, now in pairs
    )
