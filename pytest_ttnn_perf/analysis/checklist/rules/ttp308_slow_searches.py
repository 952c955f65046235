"""Searches along rows that take longer than they have to."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from pytest_ttnn_perf.analysis.checklist.parallelism import (
    NOT_TOLD,
    USED,
    available_cores,
    ops_on_cores,
    searches,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.conversions import neighbours
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.parallelism import OnCores
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Report

#: A search in fewer tiles is short, and two steps are slower than one.
_LEAST_TILES: Final = 16
#: Of each element of a core, in ns: real top-k takes 6 to 7, which search tiles; argmax 34, which
#: looks at one number after the other.
_SLOW_NS: Final = 15.0
_IN_TILES_NS: Final = 7.0
#: How many ops before a search are looked at, to see where its rows come from.
_FAR: Final = 12
_SAMPLES: Final = re.compile(r"^(?:ArgMax|TopK|Sampling|Sort)$")
_PLACES: Final = re.compile(r"^(?:ArgMax|TopK)$")
_IN_TWO_STEPS: Final = (
    "search in two steps: shard by width, so that each core has a part of each row, then search "
    "the few results"
)


class _Slow(NamedTuple):
    """A search, what it would save, and why and how."""

    saved_ns: float
    why: str
    advice: str


@rule("TTP308", "slow-searches", Severity.WARNING, Input.OPS)
def slow_searches(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    used: Limit = Limit(USED, "of the cores with work", "as TTP305"),
    shortest_us: Limit = Limit(5, "µs", "launching takes a good part of shorter ops"),
    sampling: Limit = Limit(0.25, "of a step", "a choice: what a step is for should take most"),
) -> Answer:
    """Sampling, or another search along rows, takes longer than it has to.

    ## What it finds
    Reductions, argmax, top-k, sorting and cumulative sums that read many tiles, and do so

    - on less than half of the cores that these would keep busy. They are cut by rows: a vocabulary
      in one row of tiles is searched by a single core;
    - one number after the other: more than 15 ns for each element of a core, on however many;
    - in rows that are padding: 32 of them for one user;
    - twice: the largest value and its place of the same tensor.

    Where everything from the first of them to the end of a step is more than a quarter of it, that
    is said as well.

    ## Why it matters
    At the end of a decode step, sampling from the vocabulary can take as long as all layers.

    ## What to do
    Search in two steps: reshape, or shard by width, so that each core has a part of the vocabulary,
    then search the few results. Slice to the rows in use first. Where the largest value and its
    place are both wanted, take the value from the place instead of reducing once more. Search tiles
    with top-k instead of rows with argmax. Sample on the host if it waits anyway.

    ## What it saves
    On few cores time × (1 − cores ÷ possible cores), where possible are those that there are, or as
    many as the op reads tiles; no op gets shorter than 2 µs. Of a search of single numbers, what it
    takes beyond 7 ns for each element of a core, or the part of its rows that is padding; of a
    value that is reduced although its place is searched too, all.

    ## When it is no problem
    Searches in few tiles, such as experts of a router, do not count: fewer than a tile for each of
    16 cores.

    ## Where it looks
    CORE COUNT, AVAILABLE WORKER CORE COUNT, shapes and the kernel time of the op table, on the
    slowest device.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    ops = critical_ops(step)
    judged = {
        each.row: each
        for each in ops_on_cores(step, available, shortest_us=shortest_us.value)
        if searches(each.op.signature)
    }
    if not judged:
        return Answer.not_applicable("no search along rows that takes long enough")
    slow: dict[int, _Slow] = {}
    for at, (row, _) in enumerate(ops):
        if row in judged and judged[row].possible >= _LEAST_TILES:
            found = _found(ops, at, judged[row], used.value)
            if found is not None:
                slow[row] = found
    took = sum(judged[row].op.kernel_ns for row in slow)
    saved = {row: each.saved_ns for row, each in slow.items()}
    searching = (
        "1 search along rows takes" if len(slow) == 1 else f"{len(slow)} searches along rows take"
    )
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{searching} {microseconds(took)}" + _sampling(step, ops, slow, sampling.value),
        arithmetic=f"{microseconds(took)} → {microseconds(took - sum(saved.values()))}: on all "
        "cores, in tiles, without padding and once",
        name=lambda placed: f"{op_name(placed.op)} {slow[placed.row].why}",
    ).with_fix(advice_for(((each.advice, each.saved_ns) for each in slow.values()), most=3))


def _found(ops: Sequence[Placed], at: int, each: OnCores, used: float) -> _Slow | None:
    """Return the reason that costs a search most; None where it has none."""
    op, first = each.op, each.op.signature.inputs[0]
    found: list[_Slow] = []
    twin = _twin(ops, at)
    if twin:
        why = f"{each.cores_text}, of what {twin} searches too"
        advice = f"drop the reduction: take the value from the place that {twin} finds"
        found.append(_Slow(op.kernel_ns, why, advice))
    if each.part < used:
        found.append(_Slow(each.saved_ns, each.cores_text, _IN_TWO_STEPS))
    of_each_ns = op.kernel_ns * each.cores / prod(first.padded)
    if of_each_ns >= _SLOW_NS:
        rows, real = _rows(first), _real_rows(ops, at)
        cores = counted(each.cores, "core")
        why = f"on {cores}, {of_each_ns:.0f} ns for each element of a core"
        if first.layout == "ROW_MAJOR" and real < rows:
            padding = f"{rows - real} of {counted(rows, 'row')} are padding"
            saved = op.kernel_ns * (1 - real / rows)
            found.append(_Slow(saved, f"{why}; {padding}", f"slice first: {padding}"))
        in_tiles = op.kernel_ns * _IN_TILES_NS / of_each_ns
        advice = "search tiles with `ttnn.topk` instead of numbers one after the other"
        found.append(_Slow(op.kernel_ns - in_tiles, why, advice))
    return max(found, key=lambda one: one.saved_ns, default=None)


def _twin(ops: Sequence[Placed], at: int) -> str:
    """Return the op that searches the places of the values that a reduction looks for."""
    op = ops[at].op
    if short_code(op.signature.op) != "Reduce" or "MAX" not in op_name(op):
        return ""
    own = op.signature.inputs[0]
    for _, other in ops[max(0, at - _FAR) : at + _FAR]:
        code = short_code(other.signature.op)
        if _PLACES.search(code) and other.signature.inputs[:1]:
            first = other.signature.inputs[0]
            if (first.padded, first.dtype) == (own.padded, own.dtype):
                return code
    return ""


def _rows(tensor: Tensor) -> int:
    return prod((tensor.logical or tensor.padded)[:-1])


def _real_rows(ops: Sequence[Placed], at: int) -> int:
    """Return how many of the rows of a search are no padding.

    Where an op takes more rows than the one before it gave, in a tensor of the same tiles, those
    beyond are padding that is taken for data.
    """
    rows = _rows(ops[at].op.signature.inputs[0])
    for _ in range(_FAR):
        before, _after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
        if before is None or not ops[before].op.signature.inputs:
            break
        given = ops[before].op.signature.outputs[0]
        if given.layout == "TILE" and _rows(given) < rows:
            return _rows(given)
        at = before
    return rows


def _sampling(step: OpTable, ops: Sequence[Placed], slow: Mapping[int, _Slow], limit: float) -> str:
    """Say how much of a step comes after its last product, if that is sampling and much."""
    products = [
        at for at, (_, op) in enumerate(ops) if category_of(op.signature.op) is Category.MATMUL
    ]
    tail = ops[products[-1] + 1 :] if products else ()
    samples = any(_SAMPLES.search(short_code(op.signature.op)) for _, op in tail)
    if not samples or not any(row in slow for row, _ in tail):
        return ""
    part = sum(op.kernel_ns for _, op in tail) / (step_ns(step) or 1.0)
    return f"; sampling is {percent(part)} of a step" if part > limit else ""
