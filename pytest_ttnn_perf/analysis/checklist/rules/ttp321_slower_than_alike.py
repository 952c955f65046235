"""Ops that take much longer than the same op elsewhere, which has more to do."""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, stale_signatures
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.names import op_and_function
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import Op, OpTable

_TILIZES: Final = re.compile(r"tilize", re.IGNORECASE)
#: Shorter ops differ by what launching them takes.
_SHORTEST_NS: Final = 5_000.0


@rule("TTP321", "slower-than-alike", Severity.WARNING, Input.OPS)
def slower_than_alike(
    step: OpTable,
    ops: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    times: Limit = Limit(3, "x as long", "a choice: what is less may be another memory"),
) -> Answer:
    """Ops take several times as long as the same op elsewhere in the step, on more elements.

    ## What it finds
    Elementwise ops and conversions between rows and tiles that take more than three times as long
    as another op of the step that computes the same, in the same formats, on as many elements or
    more.

    ## Why it matters
    The other op shows what the chip can do. What differs is a setting: how many cores, which
    memory, or shards that do not come out even.

    ## What to do
    Give the op that is named what the quicker one has: its cores, its memory config, and shards
    that divide the tiles evenly.

    ## What it saves
    The time of the op, less that of the quicker one.

    ## When it is no problem
    Operands that are broadcast along other dimensions can take longer.

    ## Where it looks
    OP CODE, ATTRIBUTES, operands, CORE COUNT and the kernel time of the op table, on the slowest
    device. Shapes that are not those of their op (TTP012) show by ops that are alike in all of
    this, and differ as much in time: they are left out.
    """
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    pairs = dict(_pairs(_comparable(step, ops, times.value), times.value))
    saved = {row: slow.kernel_ns - quick.kernel_ns for row, (slow, quick) in pairs.items()}
    took = sum(slow.kernel_ns for slow, _ in pairs.values())
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(pairs), 'op')} {'takes' if len(pairs) == 1 else 'take'} over "
        f"{times.value:g} times as long as the same op elsewhere in the step, on as many elements "
        "or more",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at the "
        "time of the quicker ops",
        name=lambda placed: _named(*pairs[placed.row]),
    )


class _Kind(NamedTuple):
    """What ops must have in common to be compared."""

    function: str
    formats: tuple[tuple[str, str], ...]


def _comparable(
    step: OpTable, ops: OpTable, times: float
) -> Mapping[_Kind, Sequence[tuple[tuple[int, ...], Placed]]]:
    """Return ops by kind, with the sizes of their operands; those of doubtful shapes left out."""
    stale = stale_signatures(ops)
    found: dict[_Kind, list[tuple[tuple[int, ...], Placed]]] = defaultdict(list)
    alike: dict[object, list[float]] = defaultdict(list)
    for placed in critical_ops(step):
        op = placed.op
        tensors = (*op.signature.inputs, *op.signature.outputs)
        if tensors and op.signature not in stale and _compares(op):
            formats = tuple((tensor.dtype, tensor.layout) for tensor in tensors)
            kind = _Kind(op_and_function(op.signature.op, op.attributes), formats)
            found[kind].append((tuple(prod(tensor.padded) for tensor in tensors), placed))
            alike[op.signature, op.cores].append(op.kernel_ns)
    doubtful = {key for key, taken in alike.items() if max(taken) > times * min(taken)}
    return {
        kind: [item for item in items if (item[1].op.signature, item[1].op.cores) not in doubtful]
        for kind, items in found.items()
    }


def _compares(op: Op) -> bool:
    code = op.signature.op
    return category_of(code) is Category.ELEMENTWISE or _TILIZES.search(code) is not None


def _pairs(
    kinds: Mapping[_Kind, Sequence[tuple[tuple[int, ...], Placed]]], times: float
) -> Iterator[tuple[int, tuple[Op, Op]]]:
    """Yield slow ops by row, each with the quickest that has at least as much to do."""
    for items in kinds.values():
        ordered = sorted(items, key=lambda item: item[1].op.kernel_ns)
        for sizes, (row, op) in items:
            if op.kernel_ns < _SHORTEST_NS:
                continue
            for others, (_, quick) in ordered:
                if quick.kernel_ns * times >= op.kernel_ns:
                    break
                if all(other >= own for other, own in zip(others, sizes, strict=True)):
                    yield row, (op, quick)
                    break


def _named(slow: Op, quick: Op) -> str:
    took = microseconds(quick.kernel_ns)
    return f"{op_name(slow)}{_place(slow)} ({took} as {op_name(quick)}{_place(quick)})"


def _place(op: Op) -> str:
    return "" if op.cores is None else f" on {counted(op.cores, 'core')}"
