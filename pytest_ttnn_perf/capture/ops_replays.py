"""Executions of a trace: in which order they ran, and whether the profiler saw all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.ops import TraceReplays

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Columns

Replay = tuple[int, int, int]  # device, trace, replay


def in_replay_order(columns: Columns) -> tuple[Columns, tuple[TraceReplays, ...]]:
    """Return the ops with those of each replay in the order the device began them; the replays.

    A replay has one host time for all its ops, so a file may have them in any order. Each replay
    keeps the places that it has: what ran between signposts still stands between them.
    """
    replays = _replays(columns)
    moved: dict[int, int] = {}
    for places in replays.values():
        known = [cycle for at in places if (cycle := columns.start_cycle[at]) is not None]
        if len(known) == len(places) and known != sorted(known):
            by_cycle = sorted(zip(known, places, strict=True))
            moved.update(zip(places, (at for _, at in by_cycle), strict=True))
    if moved:
        columns = columns.at([moved.get(at, at) for at in range(len(columns.device))])
    return columns, _counted(columns, replays)


def trace_replays(columns: Columns) -> tuple[TraceReplays, ...]:
    """Count the executions of each trace on each device; complete if all have the same ops.

    A trace whose executions the capture does not tell apart is left out.
    """
    return _counted(columns, _replays(columns))


def _counted(columns: Columns, replays: dict[Replay, list[int]]) -> tuple[TraceReplays, ...]:
    sequences: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for (device, trace, _), places in replays.items():
        ran = tuple([columns.signature[at] for at in places])
        sequences.setdefault((device, trace), []).append(ran)
    return tuple(
        TraceReplays(device, trace, len(ran), complete=len(set(ran)) == 1)
        for (device, trace), ran in sorted(sequences.items())
    )


def _replays(columns: Columns) -> dict[Replay, list[int]]:
    """Return the places of the ops of each replay."""
    found: dict[Replay, list[int]] = {}
    traced = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, number) in enumerate(traced):
        if trace is not None and number is not None:
            found.setdefault((device, trace, number), []).append(at)
    return found
