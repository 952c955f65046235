"""The common subsequence of two long sequences, in linear time.

Bit by bit, a whole row of the textbook's table is one number, and the next row takes a few sums of
such numbers (Hyyrö 2004): quadratic, but a thousand times faster than cell by cell, and as fast
where the sequences are nothing alike. Sequences too long for one table are searched window by
window. `difflib` is no choice: on the repeated layers of a model it takes seconds.
"""

from __future__ import annotations

from operator import ne
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    for found in _searched(a[: len(a) - tail], b[: len(b) - tail], head):
        pairs += found
    pairs += zip(range(len(a) - tail, len(a)), range(len(b) - tail, len(b)), strict=True)
    return pairs


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many items two sequences have in common before they first differ."""
    return next((i for i, differ in enumerate(map(ne, a, b)) if differ), min(len(a), len(b)))


def _searched(a: Sequence[int], b: Sequence[int], start: int) -> Iterator[Pairs]:
    """Yield the pairs of each window; the next begins where the last one's are cut off."""
    x = y = start
    while x < len(a) and y < len(b):
        fits = max(len(a) - x, len(b) - y) <= _WINDOW
        rows = _rows(a[x:] if fits else a[x : x + _WINDOW // 2], b[y : y + _WINDOW])
        cut = rows[0].bit_length() if fits else _best_cut(rows)
        yield _traced_back(rows, cut, x, y)
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


def _traced_back(rows: Sequence[int], cut: int, x: int, y: int) -> Pairs:
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
