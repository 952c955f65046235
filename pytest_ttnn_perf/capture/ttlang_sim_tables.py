"""The tables of ``tt-lang-sim-stats``, of both its releases."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.ttlang_lines import is_rule
from pytest_ttnn_perf.model.ttlang_sim import SimCounters, SimTensor

if TYPE_CHECKING:
    from pathlib import Path

_TENSORS: Final = "Tensor Access Statistics"
_BUFFERS: Final = "Dataflow Buffer Statistics"
_PIPES: Final = "Pipe Transfer Statistics"

#: The counters of each table by the title of their column.
TITLES: Final = {
    _TENSORS: {
        "Local L1 R": "local_l1_read_tiles", "Local L1 W": "local_l1_write_tiles",
        "Remote L1 R": "remote_l1_read_tiles", "Remote L1 W": "remote_l1_write_tiles",
        "DRAM R": "dram_read_tiles", "DRAM W": "dram_write_tiles",
        "Tiles Read": "tiles_read", "Tiles Written": "tiles_written",
        "Tiles R": "tiles_read", "Tiles W": "tiles_written",
        "Reads": "tensor_reads", "Writes": "tensor_writes",
    },
    _BUFFERS: {
        "Tiles Reserved": "dfb_tiles_reserved", "Tiles Waited": "dfb_tiles_waited",
        "Reserves": "dfb_reserves", "Waits": "dfb_waits",
    },
    _PIPES: {
        "Tiles Read": "pipe_tiles_received", "Tiles Written": "pipe_tiles_sent",
        "Reads": "pipe_receives", "Writes": "pipe_sends",
    },
}  # fmt: skip
_LABELS: Final = {_TENSORS: ("Tensor",), _BUFFERS: ("DFB", "Node"), _PIPES: ("Pipe",)}
_OLD_BUFFER_LABELS: Final = ("DFB", "Core")
_TOTAL: Final = "TOTAL"
_NUMBER: Final = re.compile(r"[0-9]{1,15}")


class _Row(NamedTuple):
    label: str
    numbers: tuple[int, ...]


def read_tables(lines: list[str], file: Path) -> SimCounters:
    """Read all tables; their rows must add up to their totals."""
    counters: dict[str, int] = {}
    tensors: list[SimTensor] = []
    for at, line in enumerate(lines):
        if line not in TITLES:
            continue
        if line in {earlier for earlier in lines[:at] if earlier in TITLES}:
            raise InputError(file, f"{line} stand here a second time", line=at + 1)
        table = _Table(file, lines, at)
        counters.update(zip(table.names, table.total, strict=True))
        if line == _TENSORS:
            tensors = [
                SimTensor(row.label, dict(zip(table.names, row.numbers, strict=True)))
                for row in table.rows
            ]
    if not counters:
        raise InputError(file, f"expected a table of the simulator, such as {_TENSORS!r}")
    return SimCounters(counters, tuple(tensors))


class _Table:
    """One table: the title at ``at``, a rule, column titles, rows, a total, a rule."""

    def __init__(self, file: Path, lines: list[str], at: int) -> None:
        self._file = file
        self._title = lines[at]
        self._number = at + 1
        self.names = self._columns(lines[at + 2] if at + 2 < len(lines) else "")
        self.rows: list[_Row] = []
        self.total = self._read_rows(lines, at + 3)
        # The number of the total's line is the place of the line below it.
        if self._number >= len(lines) or not is_rule(lines[self._number]):
            raise self._refusal(f"{self._title}: expected the rule below the total")
        self._check()

    def _read_rows(self, lines: list[str], first: int) -> tuple[int, ...]:
        """Return the total below the rows."""
        for self._number, line in enumerate(lines[first:], start=first + 1):
            if not line.strip("-"):
                continue
            row = self._row(line)
            if row.label == _TOTAL:
                return row.numbers
            if row.label.split() != [_TOTAL]:  # an indented one is the subtotal of a buffer
                self.rows.append(_Row(row.label.strip(), row.numbers))
        raise self._refusal(f"{self._title}: the table is cut: it has no total")

    def _refusal(self, problem: str) -> InputError:
        return InputError(self._file, problem, line=self._number)

    def _columns(self, line: str) -> tuple[str, ...]:
        known = TITLES[self._title]
        # Longer titles first: one may be the beginning of another.
        titles = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        found: list[str] = re.findall(titles, line)
        labels = tuple(re.sub(titles, "", line).split())
        allowed = {_LABELS[self._title]}
        if self._title == _BUFFERS:
            allowed.add(_OLD_BUFFER_LABELS)
        if not found or labels not in allowed or len(set(found)) < len(found):
            self._number += 2
            raise self._refusal(f"{self._title}: expected the titles of its columns")
        return tuple(known[title] for title in found)

    def _row(self, line: str) -> _Row:
        # A label may have spaces in it, and be missing where it repeats the row's above.
        label, *cells = line.rsplit(None, len(self.names))
        if len(cells) != len(self.names) or not all(map(_NUMBER.fullmatch, cells)):
            raise self._refusal(f"{self._title}: expected a row of {len(self.names)} numbers")
        return _Row(label, tuple(map(int, cells)))

    def _check(self) -> None:
        sums: Counter[int] = Counter()
        for row in self.rows:
            sums.update(dict(enumerate(row.numbers)))
        if tuple(sums[at] for at in range(len(self.names))) != self.total:
            raise self._refusal(f"{self._title}: the rows do not add up to the total")
