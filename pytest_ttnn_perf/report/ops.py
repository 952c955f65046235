"""An op table, laid out: totals, by op, by category, per device, traces, signposts, drops."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.category import category_of
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_ns
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.ops import OpTable

_HEADINGS: Final = ("op", "category", "count", "total", "share", "median", "cores")
_FIELDS: Final = ("op", "category", "count", "total_ns", "share", "median_ns", "cores")


@dataclass(frozen=True, slots=True)
class _Group:
    """Ops of one code, over all devices."""

    op: str
    category: str
    times_ns: Sequence[float]
    share: float
    cores: tuple[int, int] | None

    @property
    def total_ns(self) -> float:
        return sum(self.times_ns)

    def values(self) -> tuple[object, ...]:
        """Return what programs read."""
        cores = list(self.cores) if self.cores else None
        return (self.op, self.category, len(self.times_ns), self.total_ns, self.share,
                median(self.times_ns), cores)  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        """Return what people read."""
        low, high = self.cores or (0, 0)
        cores = "-" if self.cores is None else str(low) if low == high else f"{low}-{high}"
        return (
            self.op,
            self.category,
            str(len(self.times_ns)),
            format_ns(self.total_ns),
            f"{self.share * 100:.1f} %",
            format_ns(median(self.times_ns)),
            cores,
        )


def ops_listing(table: OpTable, *, name: str) -> Listing:
    """Lay out the op table of the file ``name``."""
    groups = _groups(table)
    cells = [group.cells() for group in groups]
    lines = [*_heading(table, name), ""]
    if groups:
        lines += table_lines(_HEADINGS, cells, right=frozenset({2, 3, 4, 5, 6}))
        lines += ["", *_categories(groups), ""]
    lines += [*_devices(table), *_traces(table), *_signposts(table), *_dropped(table)]
    values = tuple(group.values() for group in groups)
    document = {
        "format": table.format,
        "arch": table.arch,
        "rows": table.rows,
        "ops": len(table),
        "dropped": dict(table.dropped),
        "devices": list(table.devices),
        "device_kernel_time_ns": {str(d): ns for d, ns in table.kernel_ns_by_device.items()},
        "traces": [
            {"device": t.device, "trace": t.trace, "replays": t.replays, "complete": t.complete}
            for t in table.traces
        ],
        "signposts": [{"name": s.name, "position": s.position} for s in table.signposts],
        "by_op": [dict(zip(_FIELDS, each, strict=True)) for each in values],
    }
    rows = tuple((*each[:-1], _span(each[-1])) for each in values)
    return Listing(tuple(lines), document, _FIELDS, rows)


def _span(cores: object) -> str:
    return "-".join(map(str, cores)) if isinstance(cores, list) else ""


def _groups(table: OpTable) -> list[_Group]:
    columns = table.columns
    times: dict[str, list[float]] = defaultdict(list)
    cores: dict[str, set[int]] = defaultdict(set)
    names = [signature.op for signature in table.signatures]
    for index, kernel_ns, count in zip(
        columns.signature, columns.kernel_ns, columns.cores, strict=True
    ):
        times[names[index]].append(kernel_ns)
        if count is not None:
            cores[names[index]].add(count)
    whole = sum(columns.kernel_ns) or 1.0
    groups = [
        _Group(
            op,
            category_of(op).value,
            each,
            sum(each) / whole,
            (min(cores[op]), max(cores[op])) if cores[op] else None,
        )
        for op, each in times.items()
    ]
    return sorted(groups, key=lambda group: (-group.total_ns, group.op))


def _heading(table: OpTable, name: str) -> Iterator[str]:
    arch = f", {table.arch}" if table.arch else ""
    devices = counted(len(table.devices), "device")
    yield f"{name}: {table.format}{arch}; {counted(len(table), 'op')} on {devices}"


def _categories(groups: Sequence[_Group]) -> Iterator[str]:
    shares: dict[str, float] = defaultdict(float)
    for group in groups:
        shares[group.category] += group.share
    parts = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    yield "by category: " + ", ".join(f"{name} {share * 100:.1f} %" for name, share in parts)


def _devices(table: OpTable) -> Iterator[str]:
    totals = [f"{d}: {format_ns(ns)}" for d, ns in table.kernel_ns_by_device.items()]
    if totals:
        yield "kernel time by device: " + ", ".join(totals)


def _traces(table: OpTable) -> Iterator[str]:
    for trace in table.traces:
        state = "complete" if trace.complete else "INCOMPLETE: replays ran different ops"
        replays = counted(trace.replays, "replay")
        yield f"trace {trace.trace} on device {trace.device}: {replays}, {state}"


def _signposts(table: OpTable) -> Iterator[str]:
    if table.signposts:
        marks = ", ".join(f"{mark.name} (after {mark.position})" for mark in table.signposts[:20])
        more = len(table.signposts) - 20
        yield f"signposts: {marks}" + (f", and {more} more" if more > 0 else "")


def _dropped(table: OpTable) -> Iterator[str]:
    reasons = ", ".join(f"{count} {reason}" for reason, count in table.dropped.items() if count)
    yield f"rows: {table.rows}; dropped: {reasons or 'none'}"
