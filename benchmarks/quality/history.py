"""Baselines of many tests at once: what runs measured, before and since the last accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

if TYPE_CHECKING:
    from benchmarks.quality import Array

BEFORE, SINCE = 0, 1


class Histories:
    """One baseline per cell, a cell being a timing of a test; all arrays are by cell.

    ``values`` has the natural logarithms of what runs measured, by side of the last accept, padded
    with infinities. Where the session is the unit, as it was for the previous gate, each session
    is a run of its own.
    """

    def __init__(self, cells: int, samples: int) -> None:
        self.samples = samples
        self.values: Array = np.full((2, cells, MAX_SESSIONS), np.inf)
        self.runs: Array = np.zeros((2, cells), dtype=int)
        self.sessions: Array = np.zeros((2, cells), dtype=int)
        #: Sums of MAD over median, by session.
        self.mads: Array = np.zeros((2, cells))

    @classmethod
    def of(cls, times: Array, *, run_sizes: tuple[int, ...] | None = None) -> Histories:
        """Return baselines of (cells, sessions, samples) times, none accepted since.

        ``run_sizes`` is how many sessions each run has; None for one each.
        """
        stored = cls(times.shape[0], times.shape[2])
        everywhere = np.ones(times.shape[0], dtype=bool)
        start = 0
        for size in run_sizes or (1,) * times.shape[1]:
            stored.append(everywhere, *summary(times[:, start : start + size]))
            start += size
        return stored

    def append(self, where: Array, logs: Array, mads: Array, *, as_runs: bool = False) -> None:
        """Add the sessions of one run to the cells ``where``, or as many runs of one session.

        ``logs`` and ``mads`` are (cells, sessions), of the cells chosen.
        """
        (cells,) = np.nonzero(where)
        values = logs if as_runs else np.median(logs, axis=1)[:, None]
        for column in range(values.shape[1]):
            room = self.runs[SINCE, cells] < MAX_SESSIONS
            chosen = cells[room]
            self.values[SINCE, chosen, self.runs[SINCE, chosen]] = values[room, column]
            self.runs[SINCE, chosen] += 1
        self.sessions[SINCE, cells] += logs.shape[1]
        self.mads[SINCE, cells] += mads.sum(axis=1)

    def accept(self, where: Array, logs: Array, mads: Array, *, as_runs: bool = False) -> None:
        """Let one run be the new centre; of what was before, the side with more runs stays."""
        (cells,) = np.nonzero(where)
        # Sessions decide between as many runs, of which there are never so many.
        known = 100 * self.runs[:, cells] + self.sessions[:, cells]
        longer = cells[known[SINCE] >= known[BEFORE]]
        for part in (self.values, self.runs, self.sessions, self.mads):
            part[BEFORE, longer] = part[SINCE, longer]
        self.clear(SINCE, cells)
        self.append(where, logs, mads, as_runs=as_runs)

    def replace(self, where: Array, logs: Array, mads: Array, *, as_runs: bool = False) -> None:
        """Forget all that is stored of the cells ``where``, and begin with one run."""
        (cells,) = np.nonzero(where)
        self.clear(BEFORE, cells)
        self.clear(SINCE, cells)
        self.append(where, logs, mads, as_runs=as_runs)

    def clear(self, side: int, cells: Array) -> None:
        """Forget one side of some cells."""
        self.values[side, cells] = np.inf
        self.runs[side, cells] = 0
        self.sessions[side, cells] = 0
        self.mads[side, cells] = 0.0

    def residuals(self) -> tuple[Array, Array]:
        """Return the centres, and how far runs are from that of their side, in order.

        Padded with infinities at the end.
        """
        current = np.sort(self.values[SINCE], axis=1)
        centre = middle(current, self.runs[SINCE])
        found = current - centre[:, None]
        if self.runs[BEFORE].any():
            before = np.sort(self.values[BEFORE], axis=1)
            # A side without runs is all infinities: its middle is of no consequence.
            inner = middle(before, np.maximum(self.runs[BEFORE], 1))
            inner = np.where(np.isfinite(inner), inner, 0.0)
            found = np.sort(np.concatenate([before - inner[:, None], found], axis=1), axis=1)
        return centre, found

    def within(self) -> Array:
        """Return what the spread within a session leaves in its median, as a fraction."""
        # 1.4826: from a MAD to a deviation; 1.2533: from a mean's error to a median's.
        mean = self.mads.sum(axis=0) / self.sessions.sum(axis=0)
        return 1.2533 * 1.4826 * mean / np.sqrt(self.samples)


def summary(times: Array) -> tuple[Array, Array]:
    """Return the logarithms of medians and the relative MADs of (..., samples) times, as stored."""
    medians = np.median(times, axis=-1)
    mads = seven_digits(np.median(np.abs(times - medians[..., None]), axis=-1))
    medians = seven_digits(medians)
    return np.log(medians), mads / medians


def middle(ordered: Array, counts: Array) -> Array:
    """Return the median of the first ``counts`` values of each row."""
    rows = np.arange(len(ordered))
    return (ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2


def seven_digits(values: Array) -> Array:
    """Round as the baseline's file does."""
    positive = np.where(values > 0, values, 1.0)
    scale = 10.0 ** (6 - np.floor(np.log10(positive)))
    return np.round(values * scale) / scale
