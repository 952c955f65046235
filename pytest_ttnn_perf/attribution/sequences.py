"""The common subsequence of two long sequences, in linear time.

Myers' algorithm finds the longest one quickly where the sequences are much alike, and takes
quadratic time where they are not. So it is stopped after some edits and starts again from the
furthest point it reached. That can miss a long stretch that lies far away; pairing equal items by
the order of their occurrence does not, and the better of the two is taken. `difflib` is no choice:
on the repeated layers of a model it takes seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: After how many edits the search starts again: up to so many, its result is the longest there is.
#: The time per item grows with it. A model of 80 layers, an op more in each, is 80 edits.
_EDITS: Final = 128

Pairs = list[tuple[int, int]]


class _Window(NamedTuple):
    """A range of each of the two sequences."""

    a_from: int
    a_to: int
    b_from: int
    b_to: int


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Return the indices of equal items, ascending in both; the most there are, or nearly so.

    >>> common_subsequence([1, 2, 3, 4], [1, 3, 5, 4])
    [(0, 0), (2, 1), (3, 3)]
    """
    ends, inner = _trimmed(a, b)
    found, exact = _search(a, b, inner)
    if not exact:
        other = _by_occurrence(a, b, inner)
        for gap in list(_between(other, inner)):
            other += _search(a, b, gap)[0]
        found = max(found, other, key=len)
    return sorted(ends + found)


def _trimmed(a: Sequence[int], b: Sequence[int]) -> tuple[Pairs, _Window]:
    """Pair the common beginning and end; return what is left between."""
    n, m = len(a), len(b)
    shortest = min(n, m)
    head = 0
    while head < shortest and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shortest - head and a[n - 1 - tail] == b[m - 1 - tail]:
        tail += 1
    pairs = [(i, i) for i in range(head)]
    pairs += zip(range(n - tail, n), range(m - tail, m), strict=True)
    return pairs, _Window(head, n - tail, head, m - tail)


def _search(a: Sequence[int], b: Sequence[int], window: _Window) -> tuple[Pairs, bool]:
    """Return a common subsequence, and whether it is known to be the longest."""
    shared = set(a[window.a_from : window.a_to]) & set(b[window.b_from : window.b_to])
    # An item that the other side lacks cannot be paired, but would cost an edit.
    ours = [i for i in range(window.a_from, window.a_to) if a[i] in shared]
    theirs = [j for j in range(window.b_from, window.b_to) if b[j] in shared]
    left, right = [a[i] for i in ours], [b[j] for j in theirs]
    pairs: Pairs = []
    x = y = rounds = 0
    while x < len(left) and y < len(right):
        found, x, y = _advance(left, right, x, y)
        pairs += found
        rounds += 1
    return [(ours[i], theirs[j]) for i, j in pairs], rounds <= 1


def _advance(
    a: Sequence[int], b: Sequence[int], a_from: int, b_from: int
) -> tuple[Pairs, int, int]:
    """Search the shortest edit script from a point on (Myers 1986, greedy), up to some edits.

    Returns the pairs on the way and the point reached. ``reach[k]`` is how far into ``a`` so many
    edits lead on diagonal k = x − y; negative diagonals are negative indices.
    """
    n, m = len(a) - a_from, len(b) - b_from
    reach = [0] * (2 * min(_EDITS, n + m) + 3)
    history: list[list[int]] = []
    best = (0, 0, 0)  # x + y, x, y
    for edits in range(min(_EDITS, n + m) + 1):
        history.append(reach.copy())
        # Diagonals beyond the corners of the matrix lead nowhere.
        first, last = -edits + 2 * max(0, edits - m), edits - 2 * max(0, edits - n)
        best = (0, 0, 0)
        for k in range(first, last + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < n and y < m and a[a_from + x] == b[b_from + y]:
                x += 1
                y += 1
            reach[k] = x
            if x + y > best[0]:
                best = (x + y, x, y)
        if best[0] >= n + m:
            break
    _, x, y = best
    pairs = [(a_from + i, b_from + j) for i, j in _traced_back(history, x, y)]
    return pairs, a_from + x, b_from + y


def _traced_back(history: Sequence[Sequence[int]], x: int, y: int) -> Pairs:
    """Return the pairs on the way to a point that the last edit reached."""
    pairs: Pairs = []
    for edits in range(len(history) - 1, -1, -1):
        reach, k = history[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        came_x = reach[k + 1] if down else reach[k - 1]
        came_y = came_x - (k + 1 if down else k - 1)
        if edits == 0:
            came_x = came_y = 0
        while x > came_x and y > came_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = came_x, came_y
    return pairs


def _by_occurrence(a: Sequence[int], b: Sequence[int], window: _Window) -> Pairs:
    """Pair the n-th occurrence of an item with its n-th; keep as many as are in order."""
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for j in range(window.b_from, window.b_to):
        waiting[b[j]].append(j)
    pairs = [
        (i, places.popleft())
        for i in range(window.a_from, window.a_to)
        if (places := waiting.get(a[i]))
    ]
    return _ascending(pairs)


def _ascending(pairs: Pairs) -> Pairs:
    """Return the longest part of the pairs that ascends in the second index as well."""
    ends: list[int] = []  # the least second index that ends an ascent of each length
    last: list[int] = []  # and the pair that has it
    before = [-1] * len(pairs)
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before[index] = last[length - 1] if length else -1
        ends[length : length + 1] = [j]
        last[length : length + 1] = [index]
    kept: Pairs = []
    index = last[-1] if last else -1
    while index >= 0:
        kept.append(pairs[index])
        index = before[index]
    kept.reverse()
    return kept


def _between(pairs: Pairs, window: _Window) -> Iterator[_Window]:
    """Yield what lies between pairs, where both sides have something."""
    i, j = window.a_from, window.b_from
    for next_i, next_j in [*pairs, (window.a_to, window.b_to)]:
        if i < next_i and j < next_j:
            yield _Window(i, next_i, j, next_j)
        i, j = next_i + 1, next_j + 1
