"""Ops that take much of a step, and of which no other rule says why."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.op_times import worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import PRODUCTS
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, microseconds, step_ns
from pytest_ttnn_perf.analysis.ops.roofline import board_of, rooflines
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import Op, OpTable, Signature

#: A part of the time in which an op could not have moved or computed all that it works on.
_NEXT_TO_NOTHING: Final = 0.005
#: What other rules look at as a whole: what they leave out of it has to be.
_OF_OTHERS: Final = frozenset({Category.COLLECTIVE, Category.LAYOUT, Category.MOVEMENT})
#: These move data, and have work of their own that no rule looks at.
_WORKS: Final = re.compile(
    r"sample|embedding|non_?zero|halo|gather|scatter|fold|padded_?slice|slice_?write", re.IGNORECASE
)
#: Ops of which other rules save less than that are not explained by them.
_EXPLAINED: Final = 0.1


@rule("TTP315", "unexplained-time", Severity.INFO, Input.OPS)
def unexplained_time(
    step: OpTable,
    claimed: Mapping[int, float] | None,
    *,
    share: Limit = Limit(0.15, "of a step", "a judgement: what is worth a look by hand"),
    slower: Limit = Limit(4, "times the roofline", "the other rules look at what is closer to it"),
    shortest: Limit = Limit(50, "µs", "a judgement: shorter steps are mostly launching ops"),
) -> Answer:
    """Ops take much of a step, and no other rule says why.

    ## What it finds
    All ops of one code together, where they take more than 15 % of a step, at least four times as
    long as moving and computing their operands takes at the peaks of the chip, and other rules
    would save less than a tenth of them. So it does where that least time is not known, as of ops
    that read a part of their operands, or whose operands are all in L1.

    ## Why it matters
    Rules know what often goes wrong. Where they are silent about most of a step, nothing is known
    to be wrong, and nothing to be right either.

    ## What to do
    Look at these ops by hand: their grid, program config, memory and layout, and whether another op
    or a fused one does the same. Compare with another model that runs the same op on a like tensor:
    `ttnn-perf show --ops` has the time, cores and bandwidth of each.

    ## When it is no problem
    Ops whose work does not follow from their operands, such as attention over a cache that is
    nearly full, may be as fast as they can be.

    ## Where it looks
    The kernel time, the operands and DEVICE ARCH of the op table, on the slowest device, and what
    the other rules that were asked would save. Collectives are left to TTP703, and ops that only
    convert, move or rearrange data to TTP203, TTP302 and TTP307. It says nothing of a capture
    without the cores of ops or without logical shapes, where time may be padding, nor of a step of
    less than 50 µs.
    """
    if claimed is None:
        return Answer.not_measured("it looks at what other rules leave: ask them as well")
    whole = step_ns(step)
    ops = [op for _, op in critical_ops(step)]
    if all(op.cores is None for op in ops):
        return Answer.not_measured("the capture does not give the cores of ops")
    if not any(_tells_padding(op.signature) for op in ops):
        return Answer.not_measured("the capture does not say how much of its tensors is padding")
    if whole < shortest.value * 1000:
        return Answer.not_applicable(f"a step takes {microseconds(whole)} only")
    groups = [
        group
        for group in _groups(step, claimed)
        if group.took_ns > share.value * whole
        and group.saved_ns < _EXPLAINED * group.took_ns
        and not group.is_near(slower.value)
    ]
    if not groups:
        return share.clean(0.0)
    took = sum(group.took_ns for group in groups)
    named = [op for group in groups for op in group.ops]
    sentence = _sentence(groups, whole, known=board_of(step) is not None)
    return share.found(took / whole, sentence, worst_ops(named, of=whole))


def _tells_padding(signature: Signature) -> bool:
    tensors = (*signature.inputs, *signature.outputs)
    return any(tensor.logical is not None for tensor in tensors)


def _sentence(groups: Sequence[_Group], whole_ns: float, *, known: bool) -> str:
    """Say what ops take and reach; ``known`` tells whether the peaks of their chip are."""

    def why(group: _Group) -> str:
        modelled = not known or group.lacks_operands
        return "its roofline is not known" if modelled else "it has no roofline model"

    first, *others = groups
    takes = f"{first.code} takes {percent(first.took_ns / whole_ns)} of a step"
    if not others and not first.reaches:
        return f"{takes}; {why(first)} and no other rule explains it"
    parts = [takes, *(f"{each.code} {percent(each.took_ns / whole_ns)}" for each in others)]
    told = (
        f"{part} ({f'at {each.reaches}' if each.reaches else why(each)})"
        for part, each in zip(parts, groups, strict=True)
    )
    return f"{', '.join(told)}; no other rule explains {'them' if others else 'it'}"


class _Group(NamedTuple):
    """The ops of one code; ``lines`` are their rooflines, in the same order."""

    code: str
    ops: Sequence[Op]
    lines: Sequence[Roofline]
    saved_ns: float

    @property
    def took_ns(self) -> float:
        return sum(op.kernel_ns for op in self.ops)

    @property
    def lacks_operands(self) -> bool:
        """Whether these are products of which the capture does not tell what they multiply."""
        signatures = [op.signature for op in self.ops]
        is_product = category_of(signatures[0].op) in PRODUCTS
        return is_product and all(len(each.inputs) < 2 for each in signatures)

    @property
    def reached(self) -> float | None:
        """The least time as a part of what ops took; None where most of them do not tell."""
        least = [(line.kernel_ns, ns) for line in self.lines if (ns := _least_ns(line))]
        told = sum(took for took, _ in least)
        return sum(ns for _, ns in least) / told if told > self.took_ns / 2 else None

    def is_near(self, times: float) -> bool:
        """Tell whether the ops take less than so many times their least time."""
        return self.reached is not None and self.reached * times > 1

    @property
    def reaches(self) -> str:
        """What its ops reach of the peak that is nearer; "" where that is not known."""
        if self.reached is None:
            return ""
        by_dram = sum(line.dram_ns or 0.0 for line in self.lines)
        by_compute = sum(line.compute_ns or 0.0 for line in self.lines)
        peak = "the DRAM bandwidth" if by_dram >= by_compute else "what its cores compute"
        return f"{percent(self.reached)} of {peak}"


def _least_ns(line: Roofline) -> float | None:
    """Return the least time of an op; None where neither moving nor computing tells one.

    Next to nothing is what an op moves through DRAM whose operands are in L1, but for constants.
    """
    if line.stale or line.work.at_most:
        return None
    least = max(line.dram_ns or 0.0, line.compute_ns or 0.0)
    return least if least > _NEXT_TO_NOTHING * line.kernel_ns else None


def _is_of_others(code: str) -> bool:
    category = category_of(code)
    if category is Category.MOVEMENT and _WORKS.search(code):
        return False
    return category in _OF_OTHERS


def _groups(step: OpTable, claimed: Mapping[int, float]) -> Iterator[_Group]:
    """Yield the ops of the slowest device by their code, those that take longest first."""
    lines = rooflines(step)
    rows: dict[str, list[int]] = defaultdict(list)
    ops = dict(critical_ops(step))
    for row, op in ops.items():
        if not _is_of_others(op.signature.op):
            rows[short_code(op.signature.op)].append(row)
    groups = [
        _Group(
            code,
            [ops[row] for row in places],
            [lines[row] for row in places],
            sum(claimed.get(row, 0.0) for row in places),
        )
        for code, places in rows.items()
    ]
    yield from sorted(groups, key=lambda group: (-group.took_ns, group.code))
