"""The ops of a capture, fitted to the width of a terminal."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.names import OpRow, is_conversion, layer_rows, op_rows, op_views
from pytest_ttnn_perf.analysis.ops.regions import Basis, regions_of, why_invalid
from pytest_ttnn_perf.core.text import counted, duration, inert
from pytest_ttnn_perf.report.tables import (
    BOLD,
    CYAN,
    GREEN,
    RED,
    YELLOW,
    ColouredParts,
    Listing,
    cut_end,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.names import OpView
    from pytest_ttnn_perf.analysis.ops.regions import Layers, Outside, StepTime
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.report.tables import Block, Style


class _Column(NamedTuple):
    heading: str
    cell: Callable[[OpRow], str]
    left: bool = False

    def padded(self, text: str, width: int) -> str:
        return f"{cut_end(text, width):<{width}}" if self.left else f"{text:>{width}}"


#: Left of the name of the op, and right of it: those that are given up first stand last here.
_ID: Final = _Column("id", lambda row: f"#{row.number}")
_ALWAYS: Final = (_Column("time µs", lambda row: _us(row.kernel_ns)),)
_BY_WORTH: Final = (
    _Column("%", lambda row: _percent(row.share)),
    _Column("cores", lambda row: _whole(row.working_cores)),
    _Column("bound", lambda row: "stale" if row.stale else row.bound or "-"),
    _Column("DRAM %", lambda row: _percent(row.dram_fraction)),
    _Column("FLOP %", lambda row: _percent(row.compute_fraction)),
    _Column("dtypes", lambda row: inert(" ".join(filter(None, _formats(row))) or "-"), left=True),
    _Column("memory", lambda row: inert(row.memory or "-"), left=True),
    _Column("config", lambda row: inert(row.config or "-"), left=True),
    _Column("gap µs", lambda row: "-" if row.gap_ns is None else _us(max(row.gap_ns, 0.0))),
    _Column("above µs", lambda row: "-" if row.saving_ns is None else _us(row.saving_ns)),
    _Column("GB/s", lambda row: _whole(row.dram_gb_s)),
    _Column("TFLOPs", lambda row: "-" if row.tflops is None else f"{row.tflops:.1f}"),
    _Column("NoC %", lambda row: _percent(row.noc_fraction)),
    _Column("eth %", lambda row: _percent(row.ethernet_fraction)),
    _Column("sub", lambda row: _whole(row.sub_device)),
    _Column("call", lambda row: _whole(row.call)),
    _Column("line", lambda row: _whole(row.line)),
    _Column("host µs", lambda row: "-" if row.host_ns is None else _us(row.host_ns)),
)
#: The order in which they are shown.
_SHOWN: Final = (
    "time µs", "%", "gap µs", "above µs", "cores", "bound", "DRAM %", "FLOP %", "GB/s", "TFLOPs",
    "NoC %", "eth %", "dtypes", "memory", "config", "sub", "call", "line", "host µs",
)  # fmt: skip
#: What the ops of a step are sorted by, largest first.
SORTED_BY: Final[Mapping[str, Callable[[OpRow], float | None]]] = {
    "time": lambda row: row.kernel_ns,
    "gap": lambda row: row.gap_ns,
    "saving": lambda row: row.saving_ns,
}


def _formats(row: OpRow) -> tuple[str, str]:
    # Only products compute at a fidelity; what else is written beside a move says nothing.
    return (row.fidelity or "" if row.size or row.flops else "", row.dtypes)


#: A name is cut rather than to be narrower; columns are given up for it first, the ones after the
#: first few already for a name that is somewhat wider.
_NARROWEST: Final = 30
_WIDEST: Final = 32
_FIRST: Final = 6
#: A text is cut rather than left out, but not to less than that, nor is it wider.
_LEAST_TEXT: Final = 16
_MOST_TEXT: Final = 34
_BETWEEN: Final = "  "
#: Stands before the ops of a layer.
_INSIDE: Final = "| "
#: An op that takes this part of its step, or more, is worth a colour.
_HOT: Final = 0.02
_FEW_CORES: Final = 10


def op_listing(
    table: OpTable,
    *,
    name: str,
    style: Style,
    region: str | None = None,
    sort: str | None = None,
) -> Listing:
    """List the ops of a file: a step of each region.

    JSON and CSV have every op, of all steps and devices.
    """
    rows = op_rows(table)
    views = [view for view in op_views(table, rows) if region in {None, view.region.name}]
    if region is not None:
        rows = [row for row in rows if row.region == region]
    if sort is not None:
        rows = _sorted(rows, sort)
        views = [replace(view, rows=_sorted(view.rows, sort), layers=()) for view in views]
    lines: list[Block] = [*wrapped(inert(_heading(table, name)), style.width)]
    invalid = why_invalid(table)
    if invalid is not None:
        lines += wrapped(f"no number of it can be trusted: {invalid}", style.width)
    for view in views:
        lines += ["", *_view_lines(view, table, style.width)]
    for note in _notes(table, views, rows):
        lines += ["", *wrapped(note, style.width)]
    document = {
        "file": name,
        "format": table.format,
        "arch": table.arch,
        "invalid": invalid,
        "regions": [_view_document(view) for view in views],
        "ops": [row._asdict() for row in rows],
    }
    return Listing(tuple(lines), document, OpRow._fields, tuple(rows))


def _sorted(rows: Sequence[OpRow], sort: str) -> list[OpRow]:
    value = SORTED_BY[sort]
    return sorted(rows, key=lambda row: -(value(row) or 0.0))


def _heading(table: OpTable, name: str) -> str:
    words = [table.format, *filter(None, (table.arch, table.board))]
    words += [f"{table.available_cores} cores"] if table.available_cores else []
    devices = counted(len(table.devices), "device")
    return f"{name}: {', '.join(words)}; {counted(len(table), 'op')} on {devices}"


def _view_document(view: OpView) -> dict[str, object]:
    return {
        "name": view.region.name,
        "basis": view.region.basis.value,
        "steps": len(view.region.steps),
        "step": view.step,
        "device": view.device,
        "ops": [row.number for row in view.rows],
        "kernel_ns": view.kernel_ns,
        "gaps_ns": view.gaps_ns,
        "layers": [
            {
                "first": view.rows[layers.start].number,
                "ops": layers.length,
                "times": layers.times,
                "kernel_ns": _total_ns(view.rows[layers.start : layers.stop]),
            }
            for layers in view.layers
        ],
    }


def _view_lines(view: OpView, table: OpTable, width: int) -> Iterator[Block]:
    for title in _titles(view, len(table.devices)):
        yield [(cut_end(inert(title), width), BOLD)]
    blocks = list(_blocks(view))
    shown = list(chain.from_iterable(rows for _, rows in blocks))
    columns, widths = _columns(shown, width, inside=bool(view.layers))
    headings = [c.padded(c.heading, w) for c, w in zip(columns, widths[2:], strict=True)]
    head = [f"{_ID.heading:>{widths[0]}}", f"{'op':<{widths[1]}}", *headings]
    yield [(_BETWEEN.join(head).rstrip(), BOLD)]
    yield _BETWEEN.join("-" * each for each in widths)
    whole_ns = view.kernel_ns
    for layers, rows in blocks:
        if layers is not None:
            text = _layers_title(view, layers)
            yield [(cut_end(f"{' ' * widths[0]}{_BETWEEN}{text}", width), CYAN)]
        for row in rows:
            mark = _INSIDE if layers is not None else ""
            yield _row_line(row, columns, widths, mark=mark, whole_ns=whole_ns)
        if layers is not None:
            yield [(f"{' ' * widths[0]}{_BETWEEN}└", CYAN)]


def _titles(view: OpView, devices: int) -> Iterator[str]:
    region, steps = view.region, len(view.region.steps)
    gaps = "" if view.gaps_ns is None else f", gaps {duration(view.gaps_ns)}"
    name = region.name or region.basis.value
    yield f"{name}: {counted(len(view.rows), 'op')}, {duration(view.kernel_ns)}{gaps}"
    words = [f"{region.basis.value} {view.step} of {steps}, of median time"] if steps > 1 else []
    words += [f"{view.complete} of {steps} complete"] if view.complete < steps else []
    if devices > 1:
        words.append(f"device {view.device}, with most work beside collectives of {devices}")
    if words:
        yield "; ".join(words)


def _layers_title(view: OpView, layers: Layers) -> str:
    rows = view.rows[layers.start : layers.stop]
    total = _total_ns(rows)
    noun = " layers" if layers.is_long else ""
    ops = f" of {layers.length} ops" if layers.length > 1 else ""
    each = f"{duration(total / layers.times)} each"
    place = f"#{rows[0].number} to #{rows[-1].number}"
    return f"× {layers.times}{noun}{ops}: {duration(total)}, {each} ({place})"


def _total_ns(rows: Sequence[OpRow]) -> float:
    return sum(row.kernel_ns for row in rows)


def _blocks(view: OpView) -> Iterator[tuple[Layers | None, Sequence[OpRow]]]:
    """Yield the ops between layers, and those of each layer once."""
    at = 0
    for layers in view.layers:
        if at < layers.start:
            yield None, view.rows[at : layers.start]
        yield layers, layer_rows(view, layers)
        at = layers.stop
    if at < len(view.rows):
        yield None, view.rows[at:]


def _columns(rows: Sequence[OpRow], width: int, *, inside: bool) -> tuple[list[_Column], list[int]]:
    sizes = {
        column.heading: max([len(column.heading), *(len(column.cell(row)) for row in rows)])
        for column in (_ID, *_ALWAYS, *_BY_WORTH)
    }
    mark = len(_INSIDE) if inside else 0
    name = max([2, *(len(_title(row)) + mark for row in rows)])
    kept = {column.heading: column for column in _ALWAYS}
    left = width - sizes[_ID.heading] - len(_BETWEEN)
    left -= sum(sizes[heading] + len(_BETWEEN) for heading in kept)
    for place, column in enumerate(_BY_WORTH):
        spare = left - min(name, _NARROWEST if place < _FIRST else _WIDEST) - len(_BETWEEN)
        if column.left and spare >= _LEAST_TEXT:
            sizes[column.heading] = min(sizes[column.heading], spare, _MOST_TEXT)
        told = any(column.cell(row) != "-" for row in rows)
        if told and sizes[column.heading] <= spare:
            kept[column.heading] = column
            left -= sizes[column.heading] + len(_BETWEEN)
    columns = [kept[heading] for heading in _SHOWN if heading in kept]
    if "memory" not in kept:  # then the names of moves say from where to where
        name = max([2, *(len(_title(row, columns)) + mark for row in rows)])
    widths = [sizes[_ID.heading], max(2, min(name, left)), *(sizes[c.heading] for c in columns)]
    return columns, widths


def _row_line(
    row: OpRow,
    columns: Sequence[_Column],
    widths: Sequence[int],
    *,
    mark: str,
    whole_ns: float,
) -> ColouredParts:
    name = cut_end(mark + _title(row, columns), widths[1])
    cells: ColouredParts = [(f"{_ID.cell(row):>{widths[0]}}{_BETWEEN}{name:<{widths[1]}}", None)]
    for column, width in zip(columns, widths[2:], strict=True):
        cells.append((_BETWEEN, None))
        text = column.padded(column.cell(row), width)
        cells.append((text, _paint(column.heading, row, whole_ns)))
    return cells


def _title(row: OpRow, columns: Sequence[_Column] = ()) -> str:
    """Return an op with its shape, or size of a product."""
    if row.size:
        return inert(f"{row.name.partition(' ')[0]} {row.size}")
    at_once = not columns or any(column.heading == "memory" for column in columns)
    moves = at_once and is_conversion(row.op) and " → " in row.name
    return inert(row.name.partition(" → ")[0].rpartition(" ")[0] if moves else row.name)


def _paint(heading: str, row: OpRow, whole_ns: float) -> str | None:
    hot = row.kernel_ns >= _HOT * whole_ns
    if heading == "bound" and row.bound:
        return (YELLOW if hot else None) if row.bound == "slow" else GREEN
    if heading == "time µs":
        return BOLD if hot else None
    if heading == "cores" and row.working_cores is not None:
        return RED if hot and row.working_cores < _FEW_CORES else None
    if heading == "gap µs" and row.gap_ns is not None:
        return RED if row.gap_ns >= _HOT * whole_ns else None
    return None


def _notes(table: OpTable, views: Sequence[OpView], rows: Sequence[OpRow]) -> Iterator[str]:
    outside = regions_of(table).outside
    if outside.ops:
        yield (
            f"in no region: {counted(outside.ops, 'op')}, {duration(outside.kernel_ns)}; "
            "--format csv has them"
        )
    if any(row.stale for view in views for row in view.rows):
        yield "stale: with these shapes the op would be faster than the chip; they are not its own"
    if any(view.layers for view in views):
        yield "layers: a time is the median of its repeats, % that of all of them"
    measured = {row.bound_basis for view in views for row in view.rows if row.bound_basis}
    if measured:
        yield f"DRAM %, FLOP %, bound: {' or '.join(sorted(measured))}{_on_board(table)}"
    if any("/" in row.memory for view in views for row in view.rows):
        yield "memory: W, H, B: width, height, block sharded; L1W/32: on so many cores"
    on_host = sum(table.columns.host)
    if on_host:
        yield f"{counted(on_host, 'op')} ran on the host (TTP007); --format csv has them"
    if rows and not any(row.dram_fraction is not None for row in rows):
        yield (
            "no DRAM %: the peaks of this chip, or the operands of its ops, are not known; name "
            "the chip with --arch or --board"
        )


def _on_board(table: OpTable) -> str:
    """Name the board that was taken, unless a user did."""
    if table.board or not (table.arch or "").startswith("blackhole"):
        return ""
    return "; a p150's peaks are taken: --board p100 has one bank of DRAM less"


def _us(nanoseconds: float) -> str:
    us = nanoseconds / 1000
    return f"{us:.2f}" if us < 1000 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction * 100:.0f}"


def step_line(time: StepTime) -> str:
    name = time.region or "all ops"
    devices = time.devices_ns
    on = ""
    if len(devices) > 1:
        least = duration(min(devices.values()))
        on = f", on the slowest of {len(devices)} devices ({least} on the fastest)"
    steps = "" if time.basis is Basis.WHOLE else f", {counted(time.steps, time.basis.value)}"
    if time.complete is not None and time.complete < time.steps:
        steps += f" ({time.complete} of {time.steps} complete)"
    gaps = ""
    if time.gaps_ns is not None:
        # Outside a replay the profiler itself makes gaps longer.
        most = "" if time.basis is Basis.REPLAYS else "at most "
        gaps = f" and {most}{duration(time.gaps_ns)} of gaps"
    took = f"{duration(time.step_ns)} of kernels{gaps}"
    return f"{name}: {took} in {counted(time.ops, 'op')}{steps}{on}"


def outside_lines(outside: Outside | None) -> Iterator[str]:
    if outside is not None and outside.ops:
        ops = counted(outside.ops, "op")
        took = duration(outside.kernel_ns)
        yield f"in no region: {took} in {ops} (loading, compilation, warm-up)"
