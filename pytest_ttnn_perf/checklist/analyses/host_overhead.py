"""How long devices wait between ops, inside replays or windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.kind import Kind, Numbers
from pytest_ttnn_perf.checklist.analyses.sections import Part, section
from pytest_ttnn_perf.checklist.host_gaps import gaps_of
from pytest_ttnn_perf.checklist.op_times import described
from pytest_ttnn_perf.checklist.rule import not_measured
from pytest_ttnn_perf.model.analysis import Figure
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.host_gaps import Gaps
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.subject import Subject

#: What gaps are called up to how many nanoseconds.
_LENGTHS: Final = {
    "below 1 us": 1e3,
    "1 to 10 us": 1e4,
    "10 to 100 us": 1e5,
    "100 us to 1 ms": 1e6,
    "1 ms and more": float("inf"),
}


def _look(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return not_measured(gaps)
    figures = (
        Figure("devices wait (TTP401)", gaps.share, "of the time"),
        Figure("waited, all devices", gaps.waited_ns, "ns"),
        Figure("worked, all devices", gaps.worked_ns, "ns"),
    )
    notes = (f"counted in {gaps.place}, without the gap before the first op of each",)
    caveats = (gaps.caveat,) if gaps.caveat else ()
    return Numbers(figures, tuple(_sections(subject.ops, gaps)), (*notes, *caveats))


def _sections(table: OpTable, gaps: Gaps) -> Iterator[Section]:
    waits = [(table.op(at), max(table.columns.gap_ns[at] or 0.0, 0.0)) for at in gaps.waits]
    counts = {name: [ns for _, ns in waits if _length(ns) == name] for name in _LENGTHS}
    parts = (Part(name, sum(each), len(each)) for name, each in counts.items() if each)
    yield section("lengths of gaps", parts, unit="ns", of="of the gaps", ranked=False)
    before = (Part(described(op), ns) for op, ns in waits)
    yield section("waits before", before, unit="ns", of="of the gaps")


def _length(nanoseconds: float) -> str:
    return next(name for name, most in _LENGTHS.items() if nanoseconds < most)


HOST_OVERHEAD: Final = Kind(
    "host-overhead", "how long devices wait for their next op", (Input.OPS,), _look
)
