"""Calls of a model that no signpost and no trace marks: what is loaded before them, and repeats."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.region import Step

    #: The rows of each device, in their order.
    Sequences = Mapping[int, Sequence[int]]

#: Ops that weights go through when they are loaded: none of them computes anything.
_CONVERTS: Final = re.compile(
    r"tilize|to_?layout|typecast|copy|move|clone|interleaved_?to|sharded_?to|reshard|permute|"
    r"transpose|reshape|view|pad|concat",
    re.IGNORECASE,
)
#: So many at least are weights that are loaded, and not the input of a call.
_LEAST_LOADED: Final = 8
#: Between calls the host does something else: so many times as long as between the ops of one.
_APART: Final = 10.0
#: Between ops the host takes some 10 to 200 µs; the first call of a program, which compiles it,
#: milliseconds. Gaps of real windows are of one kind or the other.
COMPILING_NS: Final = 1e6


def after_loading(table: OpTable, everything: Step) -> Step:
    """Return the ops that run once weights are loaded; all, if none are loaded before them.

    Loading is what a capture begins with if it only converts, up to its longest gap: there the host
    turned from weights to the input of the first call.
    """
    start = {_loaded(table, rows) for rows in everything.values()}
    if len(start) != 1 or start == {0}:
        return everything  # devices that begin differently leave it open
    (first,) = start
    return {device: rows[first:] for device, rows in everything.items()}


def _loaded(table: OpTable, rows: Sequence[int]) -> int:
    """Return how many ops of a device load weights."""
    signature, gap_ns = table.columns.signature, table.columns.gap_ns
    converts = [bool(_CONVERTS.search(each.op)) for each in table.signatures]
    leading = next((at for at, row in enumerate(rows) if not converts[signature[row]]), 0)
    gaps = [gap_ns[row] or 0.0 for row in rows[:leading]]
    longest = max(range(1, leading), key=gaps.__getitem__, default=0)
    enough = longest >= _LEAST_LOADED and gaps[longest] >= COMPILING_NS
    return longest if enough else 0


def repeated_calls(table: OpTable, everything: Step) -> tuple[Step, ...]:
    """Return the calls of ops that are several calls of the same, else all of them as one.

    They run the same ops on all devices, with a long gap before each call but the first: layers of
    a model follow each other without one. Calls in which programs were compiled warm up those that
    follow, and are left out.
    """
    for count in _possible_counts(everything):
        calls = tuple(_cut(everything, count))
        if _are_repeats(table, everything, count) and _are_apart(table, calls):
            warm = tuple(call for call in calls if not _is_cold(table, call))
            return warm or calls
    return (everything,)


def _possible_counts(sequences: Sequences) -> Iterator[int]:
    """Yield in how many equal parts the ops of all devices can be cut, most first."""
    lengths = set(map(len, sequences.values()))
    if len(lengths) == 1:
        (length,) = lengths
        yield from (count for count in range(length // 2, 1, -1) if length % count == 0)


def _cut(sequences: Sequences, count: int) -> Iterator[Step]:
    for at in range(count):
        yield {
            device: rows[at * len(rows) // count : (at + 1) * len(rows) // count]
            for device, rows in sequences.items()
        }


def _are_repeats(table: OpTable, sequences: Sequences, count: int) -> bool:
    signature = table.columns.signature
    for rows in sequences.values():
        ran = [signature[row] for row in rows]
        length = len(ran) // count
        if ran[length:] != ran[:-length]:
            return False
    return True


def _are_apart(table: OpTable, calls: Sequence[Step]) -> bool:
    """Tell whether the host paused before each call but the first, on each device."""
    gap_ns = table.columns.gap_ns
    for call in calls[1:]:
        for rows in call.values():
            within = median([gap_ns[row] or 0.0 for row in rows[1:]])
            before = gap_ns[rows[0]]
            if before is None or before < _APART * max(within, 1.0):
                return False
    return True


def _is_cold(table: OpTable, call: Step) -> bool:
    """Tell whether most of what devices waited for in a call was the compilation of programs."""
    gap_ns = table.columns.gap_ns
    gaps = [gap_ns[row] or 0.0 for rows in call.values() for row in rows[1:]]
    return sum(gap for gap in gaps if gap >= COMPILING_NS) > sum(gaps) / 2
