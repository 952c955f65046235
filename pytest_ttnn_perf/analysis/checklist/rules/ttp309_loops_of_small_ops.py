"""Loops over users or heads that run the same small ops again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import heaviest_numbers
from pytest_ttnn_perf.analysis.checklist.removals import gaps_text, launch_gaps_ns
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    WORTH,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.layers import find_layers
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable

#: A block of more ops that repeats is a layer of a model, and no loop.
_LONGEST_BLOCK: Final = 7
#: Longer ops are no small ones: what they take is not launching.
_SMALL_NS: Final = 20_000.0


class _Loop(NamedTuple):
    """The ops of one loop, run by run: ``block`` of them in each."""

    ops: Sequence[Placed]
    block: int

    @property
    def runs(self) -> int:
        return len(self.ops) // self.block

    @property
    def took_ns(self) -> float:
        return sum(op.kernel_ns for _, op in self.ops)

    def __str__(self) -> str:
        codes = [short_code(op.signature.op) for _, op in self.ops[: self.block]]
        counts = {code: codes.count(code) for code in dict.fromkeys(codes)}
        words = (code if count == 1 else f"{count} x {code}" for code, count in counts.items())
        return f"{self.runs} runs of {', '.join(words)}"


@rule("TTP309", "loops-of-small-ops", Severity.WARNING, Input.OPS)
def loops_of_small_ops(
    step: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    runs: Limit = Limit(32, "runs", "a batch of 32 users; layers of a model have more ops"),
) -> Answer:
    """A loop runs the same small ops many times in a step.

    ## What it finds
    A short op, or a block of up to seven of them, that runs 32 times or more in a row on operands
    of the same shapes: a loop over users, heads or experts that takes a slice of a tensor in each
    turn.

    ## Why it matters
    An op takes about 2 µs however little it has to do, and on the host a call takes more.

    ## What to do
    Do all turns of the loop in one op: batch users or heads in one tensor instead of slicing it,
    and use ops that take all of them, as `ttnn.experimental.paged_fill_cache` does for caches.

    ## What it saves
    Of each turn but the first, 2 µs for each of its ops, or what these take if that is less, and
    inside replays the gaps before them. What they compute stays.

    ## When it is no problem
    Where turns depend on each other, as in a recurrence.

    ## Where it looks
    OP CODE, operands and the kernel time of the op table, in their order on the slowest device.
    """
    loops = list(_loops(step, runs.value))
    saved = {
        row: min(op.kernel_ns, LAUNCH_NS) for loop in loops for row, op in loop.ops[loop.block :]
    }
    whole = step_ns(step)
    took = sum(loop.took_ns for loop in loops)
    gaps = launch_gaps_ns(step, saved)
    count = counted(sum(len(loop.ops) for loop in loops), "op")
    return share.at_most(
        sum(saved.values()) / whole if whole else 0.0,
        f"{percent(took / (whole or 1.0))} of a step goes into {count} of "
        f"{counted(len(loops), 'loop')} over the same small ops",
        _evidence(loops, whole),
    ).saving(
        saved,
        f"up to 2 µs for each op but those of the first turn: "
        f"{microseconds(sum(saved.values()))}{gaps_text(gaps, len(saved))}",
        waiting_ns=gaps,
    )


def _loops(step: OpTable, least_runs: float) -> Iterator[_Loop]:
    ops = critical_ops(step)
    numbers: dict[object, int] = {}
    kinds = [numbers.setdefault(op.signature, len(numbers)) for _, op in ops]
    for layers in find_layers(kinds):
        if layers.length <= _LONGEST_BLOCK and layers.times >= least_runs:
            loop = _Loop(ops[layers.start : layers.stop], layers.length)
            if max(op.kernel_ns for _, op in loop.ops[: loop.block]) <= _SMALL_NS:
                yield loop


def _evidence(loops: Sequence[_Loop], whole_ns: float) -> Iterator[Evidence]:
    for loop in sorted(loops, key=lambda loop: -loop.took_ns):
        numbers = heaviest_numbers((0.0, op.number) for _, op in loop.ops[: loop.block])
        share = loop.took_ns / whole_ns if whole_ns else None
        yield Evidence(str(loop), loop.took_ns, "ns", share, numbers)
