"""Which op of one sequence stands for which op of another."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from operator import ne
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.catalogue import Catalogue
    from pytest_ttnn_perf.records.ops import Signature


#: How many items of each side are searched at once: up to so many, the result is the longest there
#: is. The time per item grows with it, and memory with its square: 3 MB here.
_WINDOW: Final = 4096
Pairs = list[tuple[int, int]]


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Return the indices of equal items, ascending in both; the most there are, or nearly so.

    >>> common_subsequence([1, 2, 3, 4], [1, 3, 5, 4])
    [(0, 0), (2, 1), (3, 3)]
    """
    our_kinds, their_kinds = set(a), set(b)
    if our_kinds == their_kinds:
        return _pairs(a, b)
    shared = our_kinds & their_kinds
    if not shared:
        return []
    # An item that the other side lacks cannot be paired, but would take time.
    ours = [i for i, item in enumerate(a) if item in shared]
    theirs = [j for j, item in enumerate(b) if item in shared]
    found = _pairs([a[i] for i in ours], [b[j] for j in theirs])
    return [(ours[i], theirs[j]) for i, j in found]


def _pairs(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Pair the common beginning, what is common between, and the common end."""
    head = _common(a, b)
    tail = _common(a[: head - len(a) - 1 : -1], b[: head - len(b) - 1 : -1])
    pairs = list(zip(range(head), range(head), strict=True))
    for found in _search_windows(a[: len(a) - tail], b[: len(b) - tail], head):
        pairs += found
    pairs += zip(range(len(a) - tail, len(a)), range(len(b) - tail, len(b)), strict=True)
    return pairs


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many items two sequences have in common before they first differ."""
    return next((i for i, differ in enumerate(map(ne, a, b)) if differ), min(len(a), len(b)))


def _search_windows(a: Sequence[int], b: Sequence[int], start: int) -> Iterator[Pairs]:
    """Yield the pairs of each window; the next begins where the last one's are cut off."""
    x = y = start
    while x < len(a) and y < len(b):
        fits = max(len(a) - x, len(b) - y) <= _WINDOW
        rows = _rows(a[x:] if fits else a[x : x + _WINDOW // 2], b[y : y + _WINDOW])
        cut = rows[0].bit_length() if fits else _best_cut(rows)
        yield _trace_back(rows, cut, x, y)
        x, y = x + len(rows) - 1, y + cut


def _rows(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the rows of the table, first that before any item of ``a``.

    In each, for the items of ``a`` up to one, bit j is clear where a longer common subsequence ends
    with ``b[j]`` than anywhere before.
    """
    places: dict[int, int] = {}
    for j, item in enumerate(b):
        places[item] = places.get(item, 0) | 1 << j
    row = full = (1 << len(b)) - 1
    rows = [row]
    for item in a:
        met = row & places.get(item, 0)
        row = (row + met | row - met) & full
        rows.append(row)
    return rows


def _best_cut(rows: Sequence[int]) -> int:
    """Return how many items of ``b`` best go with those of ``a``, if both go on.

    Each item of ``b`` should pay: bring about as many pairs more as one on the diagonal does. For
    sequences that are alike, that is where the fewest edits lead.
    """
    across = len(rows) - 1
    ends = f"{rows[-1]:0{rows[0].bit_length()}b}"[::-1]  # a digit per item of b
    price = ends.count("0", 0, across) / (2 * across)
    best = worth = 0.0
    cut = 0
    for j, digit in enumerate(ends, start=1):
        worth += (digit == "0") - price
        if worth > best:
            best, cut = worth, j
    return cut


def _trace_back(rows: Sequence[int], cut: int, x: int, y: int) -> Pairs:
    """Return a longest common subsequence of all items of ``a`` and the first ones of ``b``.

    ``x`` and ``y`` is where the window begins.
    """
    pairs: Pairs = []
    lower = (1 << cut) - 1
    j = (rows[-1] & lower ^ lower).bit_length() - 1  # the last bit that is clear
    for i in range(len(rows) - 2, -1, -1):
        if j < 0:
            break
        if rows[i] >> j & 1:  # without this item, nothing longer ends there: so it is one of them
            pairs.append((x + i, y + j))
            lower = (1 << j) - 1
            j = (rows[i] & lower ^ lower).bit_length() - 1
    pairs.reverse()
    return pairs


#: Stands for no match.
NONE: Final = -1


def slide(to: list[int], a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> None:
    """Slide each run without a match to where the matches beside it agree best.

    ``to`` has the place in ``b`` that each of ``a`` is matched with, by padded shapes. Where x and
    x' are alike in those, "x went, before x'" and "x' went, after x" are as good as each other. The
    better one is that which leaves the op that did not change otherwise.
    """
    run = next_run(to, 0)
    while run:
        shift = _slide_run(to, run, a, b, catalogue=catalogue)
        run = next_run(to, run[1] + shift + 1)


def next_run(to: Sequence[int], start: int) -> tuple[int, int] | None:
    """Return where the next run without a match begins and ends, from a place on."""
    try:
        start = to.index(NONE, start)
    except ValueError:
        return None
    matched = (place for place in range(start, len(to)) if to[place] != NONE)
    return start, next(matched, len(to))


def _slide_run(
    to: list[int],
    run: tuple[int, int],
    a: Sequence[int],
    b: Sequence[int],
    *,
    catalogue: Catalogue,
) -> int:
    """Slide one run; return by how much, negative to the left."""
    padded = catalogue.alike.padded
    best_gain = best_shift = 0
    for step in (-1, 1):
        gain = shift = 0
        for source, target in _slides(to, run, step):
            if padded[a[source]] != padded[a[target]]:
                break
            shift += step
            gain += _agreement(a[target], b[to[source]], catalogue)
            gain -= _agreement(a[source], b[to[source]], catalogue)
            if gain > best_gain:
                best_gain, best_shift = gain, shift
    if best_shift:
        way = 1 if best_shift > 0 else -1
        for source, target in list(_slides(to, run, way))[: abs(best_shift)]:
            to[target], to[source] = to[source], NONE
    return best_shift


def _slides(to: Sequence[int], run: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
    """Yield the matched ops beside a run, outwards, each with the place it would slide to."""
    start, end = run
    source = end if step > 0 else start - 1
    while 0 <= source < len(to) and to[source] != NONE:
        yield source, source - step * (end - start)
        source += step


def _agreement(ours: int, theirs: int, catalogue: Catalogue) -> int:
    if ours == theirs:
        return 2
    exact = catalogue.alike.exact
    return 1 if exact[ours] == exact[theirs] else 0


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
        return _match_in_order(before, after, catalogue)
    to, moved = _match_in_order(after, before, catalogue)
    return Matches(_inverted(to, len(before)), {ours: theirs for theirs, ours in moved.items()})


def _in_order(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> bool:
    variants = catalogue.variants
    for ours, theirs in zip(before, after, strict=False):
        if ours != theirs:
            return repr(variants[ours]) < repr(variants[theirs])
    return len(before) <= len(after)


def _match_in_order(a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> Matches:
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
    moved = _find_moved(to, a, b, alike.exact) if _share(*kinds, alike.exact) else {}
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


def _find_moved(
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


class Strand(NamedTuple):
    """The ops of a device: the number of each one's variant, and its time in whole units."""

    variants: tuple[int, ...]
    units: Sequence[int]


class Pairing(NamedTuple):
    """Devices that ran alike, before and after; their units are sums, each device by its weight."""

    before: Strand
    after: Strand
    weight: int


def pair_strands(before: Sequence[Strand], after: Sequence[Strand]) -> tuple[list[Pairing], int]:
    """Pair devices by their order; return the pairings and the sum of their weights.

    As many after as before are paired one to one. Otherwise each side is cut into equal shares of
    one whole, and a device is paired with those whose shares lie over its own, by how much they
    do: so that both sides keep the mean over their devices.
    """
    whole = math.lcm(len(before), len(after))
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Pairing]] = {}
    for i, j, weight in _shares(len(before), len(after)):
        pairing = Pairing(before[i], after[j], weight)
        key = (pairing.before.variants, pairing.after.variants)
        alike.setdefault(key, []).append(pairing)
    return [_merge_pairings(pairings) for pairings in alike.values()], whole


def _shares(n: int, m: int) -> Iterator[tuple[int, int, int]]:
    """Yield which of n shares of a whole lies over which of m shares, and by how much.

    >>> list(_shares(2, 3))
    [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 2, 2)]
    """
    whole = math.lcm(n, m)
    start = 0
    while start < whole:
        i, j = start * n // whole, start * m // whole
        end = min((i + 1) * whole // n, (j + 1) * whole // m)
        yield i, j, end - start
        start = end


def _merge_pairings(pairings: Sequence[Pairing]) -> Pairing:
    first = pairings[0]
    weights = [pairing.weight for pairing in pairings]
    return Pairing(
        Strand(first.before.variants, _sum_columns([p.before.units for p in pairings], weights)),
        Strand(first.after.variants, _sum_columns([p.after.units for p in pairings], weights)),
        sum(weights),
    )


def _sum_columns(columns: Sequence[Sequence[int]], weights: Sequence[int]) -> Sequence[int]:
    if weights == [1]:
        return columns[0]
    return [
        sum(weight * units for weight, units in zip(weights, place, strict=True))
        for place in zip(*columns, strict=True)
    ]
