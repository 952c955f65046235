"""Where a run of ops without a match stands, when several places are equally good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.attribution.catalogue import Catalogue

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
