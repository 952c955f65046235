"""Layouts of tensors, what changing them costs, and what computes on rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import by_bytes, by_time
from pytest_ttnn_perf.checklist.op_times import kernel_ns, ops_like
from pytest_ttnn_perf.checklist.operands import operands_of
from pytest_ttnn_perf.checklist.rules.ttp201_row_major_compute import RowMajorCompute
from pytest_ttnn_perf.checklist.rules.ttp203_layout_conversions import LayoutConversions
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.subject import Subject

_OF: Final = "of operand bytes"
#: Ops that turn rows into tiles, or tiles into rows.
_CONVERTS: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)


def _look(subject: Subject) -> Numbers:
    rows = [each for each in operands_of(subject) if each.tensor.layout == "ROW_MAJOR"]
    return judged(
        subject,
        {"conversions": LayoutConversions, "computing on rows": RowMajorCompute},
        by_bytes("layouts", operands_of(subject), lambda each: each.tensor.layout, of=_OF),
        by_bytes("ops with row-major operands", rows, lambda each: each.op, of="of such bytes"),
        *_conversions(subject),
    )


def _conversions(subject: Subject) -> Iterator[Section]:
    if subject.ops is not None:
        ops = ops_like(subject.ops, lambda one: _CONVERTS.search(one.op) is not None)
        yield by_time("conversions", ops, whole=kernel_ns(subject.ops))


LAYOUT: Final = Kind(
    "layout", "layouts of tensors, and conversions", (Input.OPS, Input.REPORT), _look
)
