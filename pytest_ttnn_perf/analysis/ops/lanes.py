"""The ops whose times are compared: those of each device, or of a region's middle step."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.ops.regions import middle_steps, slowest_rows
from pytest_ttnn_perf.records.ops import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.records.ops import Columns, OpTable
    from pytest_ttnn_perf.records.region import Region


class Lane(NamedTuple):
    """The ops of one device: a row of the table for each, and how long it took."""

    rows: Sequence[int] = ()
    kernel_ns: Sequence[float] = ()


def middle_lanes(table: OpTable, region: Region) -> tuple[Lane, ...]:
    """Return what makes up the time of a region: its middle step, or two, on the slowest device."""
    kernel_ns = table.columns.kernel_ns
    chosen = (slowest_rows(table, step) for step in middle_steps(table, region))
    return tuple(Lane(rows, [kernel_ns[row] for row in rows]) for rows in chosen)


def lanes_of(table: OpTable) -> tuple[tuple[Lane, ...], Lane]:
    """Return the lanes of a table's devices, and that of the host.

    The devices are in ascending order; an empty lane stands for none. Ops that fell back to the
    host run, but take no kernel time.
    """
    c = table.columns
    rows_of: defaultdict[int, list[int]] = defaultdict(list)
    for row, device in enumerate(c.device):
        rows_of[device].append(row)
    host = rows_of.pop(HOST, [])
    devices = tuple(_lane(c, rows_of[device]) for device in sorted(rows_of))
    return devices or (Lane(),), Lane(host, [0.0] * len(host))


def _lane(c: Columns, rows: Sequence[int]) -> Lane:
    """Put one replay of a trace where the trace ran first; what ran outside stays as it is.

    A trace whose replays the capture does not tell apart counts as outside.
    """
    if {c.replay[row] for row in rows} == {None}:
        return Lane(rows, list(map(c.kernel_ns.__getitem__, rows)))
    replays: dict[int, dict[int, list[int]]] = {}
    for row in rows:
        trace, replay = c.trace[row], c.replay[row]
        if trace is not None and replay is not None:
            replays.setdefault(trace, {}).setdefault(replay, []).append(row)
    kept: list[int] = []
    kernel_ns: list[float] = []
    done: set[int] = set()
    for row in rows:
        trace = c.trace[row]
        if trace is None or c.replay[row] is None:
            kept.append(row)
            kernel_ns.append(c.kernel_ns[row])
        elif trace not in done:
            done.add(trace)
            complete = _complete(c, replays[trace])
            kept += complete[0]
            places = zip(*complete, strict=True)
            kernel_ns += [median([c.kernel_ns[each] for each in place]) for place in places]
    return Lane(kept, kernel_ns)


def _complete(c: Columns, replays: Mapping[int, Sequence[int]]) -> list[Sequence[int]]:
    """Return the replays that ran the same ops as most of the longest: shorter ones lost some."""
    longest = max(map(len, replays.values()))
    whole = [
        (tuple(c.signature[row] for row in rows), rows)
        for _, rows in sorted(replays.items())
        if len(rows) == longest
    ]
    # Of equally common ones the first: that is the order Counter keeps.
    ((usual, _),) = Counter(ops for ops, _ in whole).most_common(1)
    return [rows for ops, rows in whole if ops == usual]
