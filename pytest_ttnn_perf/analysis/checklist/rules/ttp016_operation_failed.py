"""Operations that failed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, shortened, size
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttnn_report import OperationError, Report

#: What ended without an error of its own: the program went no further.
_CUT: Final = "incomplete_operation"
_LONGEST: Final = 160
_NO_ROOM: Final = re.compile(
    r"Out of Memory: Not enough space to allocate (\d+) B (\w+) buffer across (\d+) banks, where "
    r"each bank needs to store (\d+) B(?:, but bank size is (?:only )?(\d+) B)?"
    r"(?:.*?largest free block: (\d+) B)?"
)
_TOO_LARGE: Final = re.compile(r"grow to (\d+) B which is beyond max L1 size of (\d+) B")
_CLASH: Final = re.compile(
    r"clash with L1 buffers.*?allocated at (\d+).*?region ends at (\d+)", re.DOTALL
)


@rule("TTP016", "operation-failed", Severity.ERROR, Input.REPORT)
def operation_failed(
    report: Report, *, most: Limit = Limit(0, "operations", "what failed was not computed")
) -> Answer:
    """Operations of the program failed.

    ## What it finds
    The operations that raised an error, with its reason; of those that ran out of memory, what they
    asked for and what there was. Those that were begun and never ended are counted apart: the
    program went no further there.

    ## Why it matters
    What follows was not run, or ran on something else. Numbers of such a program say nothing of the
    model: they are `NO_DATA`, and never become a baseline.

    ## What to do
    Fix the call that is named; where memory ran out, choose smaller blocks
    (`act_block_h_override`,
    `in0_block_w`, `per_core_M`), keep skip connections in DRAM, shard over more cores, use
    bfloat8_b, and free tensors with `ttnn.deallocate` or `deallocate_activation`. Then capture
    again.

    ## When it is no problem
    A test that provokes the error. Waive the rule there, and attach no such report.

    ## Where it looks
    The errors of the report database, or those that the captured graph has.
    """
    failed = [error for error in report.errors if error.kind != _CUT]
    cut = [error for error in report.errors if error.kind == _CUT]
    if not report.errors:
        return most.clean(0.0)
    starved = sum(_memory(error) is not None for error in failed)
    lack = f", {starved} for lack of memory" if starved else ""
    texts = [f"{counted(len(failed), 'operation')} failed{lack}"] if failed else []
    texts += [f"{counted(len(cut), 'operation')} did not end"] if cut else []
    # What ran out of memory is what can be remedied by what this rule says.
    ranked = sorted(failed, key=lambda error: _memory(error) is None)
    return most.found(
        float(len(report.errors)),
        "; ".join(texts),
        (Evidence(_text(error)) for error in (*ranked, *cut)),
    )


def _text(error: OperationError) -> str:
    place = "" if error.operation is None else f" (operation {error.operation})"
    why = _memory(error) or error.reason or error.kind or "no reason is given"
    return f"{error.name or 'unnamed'}{place}: {shortened(why, _LONGEST)}"


def _memory(error: OperationError) -> str | None:
    """Say what an operation asked for, and what there was; None for another error.

    Sizes are said as people say them: a message has nine digits in bytes.
    """
    reason = error.reason or ""
    found = _NO_ROOM.search(reason)
    if found is not None:
        whole, kind, banks, each, bank, free = found.groups()
        asked = f"{size(int(whole))} of {kind}, {size(int(each))} in each of {banks} banks"
        there = f" of {size(int(bank))}" if bank else ""
        left = f"; the largest free block has {size(int(free))}" if free else ""
        return f"out of memory: asked for {asked}{there}{left}"
    found = _TOO_LARGE.search(reason)
    if found is not None:
        needed, most = map(int, found.groups())
        return f"out of memory: circular buffers of {size(needed)} in an L1 of {size(most)}"
    found = _CLASH.search(reason)
    if found is not None:
        starts, ends = map(int, found.groups())
        over = size(max(ends - starts, 0))
        return f"out of memory: circular buffers reach {over} into tensors in L1"
    return reason if "out of memory" in reason.lower() else None
