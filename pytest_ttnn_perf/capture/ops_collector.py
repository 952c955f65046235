"""Gathers the ops of a capture, batch by batch, into the columns of an op table.

A row that is no op of the table is counted by its reason: no kernel time was recorded, or one that
cannot be true. Nothing but the capture of a trace leaves rows behind that rightly have no time: the
device did not run these ops then, and says nothing of them at all; the replays did, which stand in
the file under the same number of the host's call.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.ops_cells import NO_TEXT, CellError, Interned, in_column, text, whole
from pytest_ttnn_perf.capture.ops_columns import ATTRIBUTES, REPLAY
from pytest_ttnn_perf.capture.ops_replays import in_replay_order
from pytest_ttnn_perf.capture.ops_rows import Role, shared_decoder, signature_decoder
from pytest_ttnn_perf.capture.ops_times import (
    NO_KERNEL_TIME,
    NO_TIMES,
    TimeCells,
    Times,
    TimesOfOne,
    one_by_one,
    reason_to_drop,
    time_cells,
    times_of,
    unless_blank,
    usual_times,
)
from pytest_ttnn_perf.model.ops import HOST, Columns, OpTable, Signpost, Unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.capture.ops_columns import Layout
    from pytest_ttnn_perf.capture.ops_records import Rows
    from pytest_ttnn_perf.capture.ops_rows import Shared

T = TypeVar("T")

NO_DEVICE: Final = "no device"

#: Of some rows: the numbers of their signature, shared values, attributes and replay.
_Numbers = tuple[list[int], list[int], list[int], list[int]]
#: The line of a row, and the cell that numbers the host's call.
_Place = tuple[int, bytes]
#: An op of a call of the host: device, signature, call.
_Call = tuple[int | None, int, bytes]


class Collector:
    """The ops so far. ``rows`` counts all rows, whatever became of them."""

    def __init__(self, file: Path, layout: Layout) -> None:
        self._file = file
        self._layout = layout
        self._last_cell_is_used = layout.last_is_used
        self._signature_cells = _several(layout.signature)
        self._shared_cells = _several(layout.shared)
        self._fidelities = Interned(text, nothing=NO_TEXT)
        self._signatures = Interned(signature_decoder(layout))
        self._shared = Interned(shared_decoder(layout, self._fidelities))
        self._attributes = Interned(partial(in_column, ATTRIBUTES, text), nothing=NO_TEXT)
        self._replays = Interned(partial(in_column, REPLAY, whole))
        self.rows = 0
        self._dropped: dict[str, int] = {}
        self._unread: list[Unread] = []
        self._blank: list[tuple[_Call, Unread]] = []
        self._replayed: set[_Call] = set()
        self._signposts: list[Signpost] = []
        self._numbers: _Numbers = ([], [], [], [])
        self._times = Times([], [], [], [], [], [])

    def add(self, rows: Rows, lines: list[int]) -> None:
        """Take in rows of the header's width, with the lines they begin on."""
        self.rows += len(rows)
        if self._last_cell_is_used:
            for row in rows:
                row[-1] = row[-1].rstrip(b"\r\n")
        numbers = self._numbers_of(rows, lines)
        cells = time_cells(rows, self._layout)
        places = list(zip(lines, _column(rows, self._layout.call), strict=True))
        self._note_replayed(numbers, places)
        start = 0
        for at in self._others(numbers[1], cells.kernel):
            self._add_ops(numbers, cells, places, part=slice(start, at))
            self._add_other(numbers, at, cells, places[at])
            start = at + 1
        self._add_ops(numbers, cells, places, part=slice(start, len(rows)))

    def _note_replayed(self, numbers: _Numbers, places: list[_Place]) -> None:
        """Remember the calls that a replay of a trace ran."""
        signatures, shared, _, _ = numbers
        known = self._shared.known
        traced = {number for number in set(shared) if known[number].trace is not None}
        if traced:
            self._replayed.update(
                (known[own].device, signature, call)
                for signature, own, (_, call) in zip(signatures, shared, places, strict=True)
                if own in traced
            )

    def _others(self, shared: list[int], kernel: Sequence[bytes]) -> list[int]:
        """Return the places of the rows that are not ops with a time on a device."""
        known, device = self._shared.known, Role.DEVICE
        others = {number for number in set(shared) if known[number].role is not device}
        if not others and b"" not in kernel:
            return []
        pairs = enumerate(zip(shared, kernel, strict=True))
        return [at for at, (number, time) in pairs if not time or number in others]

    def _numbers_of(self, rows: Rows, lines: list[int]) -> _Numbers:
        def numbers(interned: Interned[Any], of: Iterable[bytes]) -> list[int]:
            cells = list(of)
            try:
                return list(map(interned.__getitem__, cells))
            except CellError as cause:
                wrong = next(at for at, cell in enumerate(cells) if cell not in interned)
                raise InputError(self._file, str(cause), line=lines[wrong]) from cause

        join = b",".join
        return (
            numbers(self._signatures, map(join, map(self._signature_cells, rows))),
            numbers(self._shared, map(join, map(self._shared_cells, rows))),
            numbers(self._attributes, _column(rows, self._layout.attributes)),
            numbers(self._replays, _column(rows, self._layout.replay)),
        )

    def _add_other(self, numbers: _Numbers, at: int, cells: TimeCells, place: _Place) -> None:
        """Take in a row that is not an op with a time on a device."""
        own = [column[at] for column in numbers]
        signature, shared, *_ = own
        role = self._shared.known[shared].role
        if role is Role.SIGNPOST:
            name = self._signatures.known[signature].op
            self._signposts.append(Signpost(name, len(self._times.kernel_ns)))
        elif role is Role.HOST:
            self._keep(own, NO_TIMES)
        elif cells.kernel[at].strip(b'"'):
            self._drop(NO_DEVICE, own, place, began=True)
        elif role is Role.UNKNOWN:
            self._count(NO_KERNEL_TIME)
        else:
            began = bool(cells.start_cycle and cells.start_cycle[at].strip(b'"'))
            self._drop(NO_KERNEL_TIME, own, place, began=began)

    def _add_ops(
        self, numbers: _Numbers, cells: TimeCells, places: list[_Place], *, part: slice
    ) -> None:
        """Take in rows of ops on a device: all at once where nothing is odd about them."""
        if part.start == part.stop:
            return
        numbers_of_part = [column[part] for column in numbers]
        cells_of_part = TimeCells(*[column[part] for column in cells])
        times = usual_times(cells_of_part)
        if times is None:
            self._add_one_by_one(numbers_of_part, cells_of_part, places[part])
            return
        columns: tuple[list[Any], ...] = (*self._numbers, *self._times)
        for column, more in zip(columns, (*numbers_of_part, *times), strict=True):
            column.extend(more)

    def _add_one_by_one(
        self, numbers: list[list[int]], cells: TimeCells, places: list[_Place]
    ) -> None:
        rows = zip(places, zip(*numbers, strict=True), one_by_one(cells), strict=True)
        for place, own, times in rows:
            try:
                own_times = times_of(self._layout, times)
            except CellError as cause:
                raise InputError(self._file, str(cause), line=place[0]) from cause
            reason = reason_to_drop(own_times)
            if reason is None:
                self._keep(own, own_times)
            else:
                began = reason != NO_KERNEL_TIME or own_times.start_cycle is not None
                self._drop(reason, own, place, began=began)

    def _keep(self, numbers: Iterable[int], times: TimesOfOne) -> None:
        columns: tuple[list[Any], ...] = (*self._numbers, *self._times)
        for column, value in zip(columns, (*numbers, *times), strict=True):
            column.append(value)

    def _drop(self, reason: str, numbers: Sequence[int], place: _Place, *, began: bool) -> None:
        """Leave out an op of a device; one that ``began`` there has run, and should have a time."""
        self._count(reason)
        signature, shared, *_ = numbers
        kind, (line, call) = self._shared.known[shared], place
        unread = Unread(line, reason, len(self._signposts))
        if began or kind.trace is not None:
            self._unread.append(unread)
        else:
            self._blank.append(((kind.device, signature, call), unread))

    def _count(self, reason: str) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + 1

    def table(self) -> OpTable:
        """Return what was gathered."""
        signatures, shared, attributes, replays = self._numbers
        kinds, times = self._shared.known, self._times
        blank = [unread for call, unread in self._blank if call not in self._replayed]
        used_signatures, signatures = _only_used(self._signatures.known, signatures)
        used_attributes, attributes = _only_used(self._attributes.known, attributes)
        columns, traces = in_replay_order(
            Columns(
                signature=signatures,
                device=_spread([_place(kind) for kind in kinds], shared),
                kernel_ns=times.kernel_ns,
                fw_ns=times.fw_ns,
                gap_ns=times.gap_ns,
                ideal_ns=_spread([kind.ideal_ns for kind in kinds], shared),
                cores=_spread([kind.cores for kind in kinds], shared),
                fidelity=_spread([kind.fidelity for kind in kinds], shared),
                attributes=attributes,
                trace=_spread([kind.trace for kind in kinds], shared),
                replay=_spread(self._replays.known, replays),
                start_cycle=times.start_cycle,
                host=_spread([kind.role is Role.HOST for kind in kinds], shared),
                core_min_ns=unless_blank(times.core_min_ns),
                core_max_ns=unless_blank(times.core_max_ns),
            )
        )
        return OpTable(
            format=self._layout.format,
            rows=self.rows,
            columns=columns,
            signatures=used_signatures,
            fidelities=self._fidelities.known,
            attribute_texts=used_attributes,
            signposts=tuple(self._signposts),
            traces=traces,
            dropped=self._dropped,
            unread=tuple(sorted([*self._unread, *blank])),
            arch=_only_one(kind.arch for kind in kinds),
            available_cores=_only_one(kind.available_cores for kind in kinds),
            kernel_time=self._layout.kernel_time,
        )


def _place(kind: Shared) -> int:
    return HOST if kind.device is None or kind.role is Role.HOST else kind.device


def _several(columns: tuple[int, ...]) -> Callable[[list[bytes]], Sequence[bytes]]:
    """Return what takes some cells of a row; itemgetter alone gives no sequence for one."""
    if len(columns) == 1:
        return itemgetter(slice(columns[0], columns[0] + 1))
    return itemgetter(*columns)


def _column(rows: Rows, column: int | None) -> list[bytes]:
    return [b""] * len(rows) if column is None else [row[column] for row in rows]


def _spread(values: Sequence[T], numbers: list[int]) -> list[T]:
    return list(map(values.__getitem__, numbers))


def _only_used(values: Sequence[T], numbers: list[int]) -> tuple[list[T], list[int]]:
    """Leave out the values that no op of the table has, and number the others anew; -1 stays."""
    used = [at for at in dict.fromkeys(numbers) if at >= 0]
    anew = {-1: -1, **{at: position for position, at in enumerate(used)}}
    return [values[at] for at in used], list(map(anew.__getitem__, numbers))


def _only_one(values: Iterable[T | None]) -> T | None:
    """Return the value that all agree on; None where they differ or say nothing."""
    said = {value for value in values if value is not None}
    return said.pop() if len(said) == 1 else None
