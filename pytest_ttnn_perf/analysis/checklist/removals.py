"""Ops that compute nothing and could go: which of them have to stay, and what goes with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.conversions import without_producer
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, board_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor


#: The bandwidth of DRAM where a capture does not name its chip: that of the slowest.
_SLOWEST_GB_S: Final = 288.0
#: What brings an input in shape is far too slow from so many times its bytes by the bandwidth on:
#: real moves and conversions of whole tensors take 1 to 3 times, those that also pad 5 to 10.
_FAR_ABOVE: Final = 10.0
#: And from so long on: shorter ones are mostly launching.
_SHORT_NS: Final = 20_000.0
#: What such an op could take, of its bytes by the bandwidth.
_REACHABLE: Final = 3.0
_SLOW_INPUT, _SLOW_OUTPUT = "slow input conversion", "slow output conversion"


class Removal(NamedTuple):
    """What removing an op saves of its time.

    Of one that has to stay and is far too ``slow`` it is only a part; ``slow`` says what it is.
    """

    saved_ns: float
    slow: str = ""


def removable(step: OpTable, is_one: Callable[[Signature], bool]) -> Mapping[int, Removal]:
    """Return the ops of a kind that a step could do without, by their row.

    What comes in row-major from the host has to be brought in shape somewhere, and so has what the
    step begins and ends with. That stays, unless it takes many times what its bytes need: then it
    is a slow conversion of an input, and what can be saved is the rest.
    """
    ops = critical_ops(step)
    bandwidth = _bandwidth(step)
    arrives = _arriving(step)
    found: dict[int, Removal] = {}
    for at, (row, op) in enumerate(ops):
        if not is_one(op.signature):
            continue
        if row not in arrives and 0 < at < len(ops) - 1:
            found[row] = Removal(op.kernel_ns)
            continue
        read = sum(map(_logical_bytes, op.signature.inputs[:1]))
        # What it gives is as large where a capture does not tell.
        moved = (read + (sum(map(_logical_bytes, op.signature.outputs)) or read)) / bandwidth
        if op.kernel_ns > max(_FAR_ABOVE * moved, _SHORT_NS) and moved:
            left = max(_REACHABLE * moved, LAUNCH_NS)
            is_last = row not in arrives and at == len(ops) - 1 > 0
            kind = _SLOW_OUTPUT if is_last else _SLOW_INPUT
            found[row] = Removal(op.kernel_ns - left, kind)
    return found


def _logical_bytes(tensor: Tensor) -> float:
    """Return the bytes of a tensor without padding, which is what makes many of them slow."""
    return prod(tensor.logical or tensor.padded) * BYTES.get(tensor.dtype, 0.0)


def _bandwidth(step: OpTable) -> float:
    board = board_of(step)
    return _SLOWEST_GB_S if board is None else board.dram_gb_s


@once_per_table
def _arriving(step: OpTable) -> frozenset[int]:
    ops = critical_ops(step)
    first_seen = without_producer([op.signature for _, op in ops])
    return frozenset(
        row
        for (row, op), arrives in zip(ops, first_seen, strict=True)
        if arrives and op.signature.inputs[0].layout == "ROW_MAJOR"
    )


def launch_gaps_ns(step: OpTable, rows: Iterable[int]) -> float:
    """Return what launching some ops takes between ops: what goes with them, inside replays.

    Outside of replays the host decides how long a gap is, and the profiler makes it longer.
    """
    wanted = set(rows)
    gaps = (
        op.gap_ns or 0.0
        for row, op in critical_ops(step)[1:]
        if row in wanted and op.replay is not None
    )
    return sum(min(max(gap, 0.0), LAUNCH_NS) for gap in gaps)


def gaps_text(gaps_ns: float, ops: int) -> str:
    """Return what the gaps before some ops add to their time, in words; "" for nothing."""
    if not gaps_ns:
        return ""
    before = "the gap before it" if ops == 1 else "the gaps before them"
    return f" and {microseconds(gaps_ns)} of {before}"


def check_removals(
    step: OpTable,
    found: Mapping[int, Removal],
    share: Limit,
    *,
    noun: str,
    sentence: str,
    name: Callable[[Placed], str] = lambda placed: op_name(placed.op),
) -> Answer:
    """Answer with a finding where ops that could go take more than a share of the step."""
    saved = {row: each.saved_ns for row, each in found.items()}
    gaps = launch_gaps_ns(step, (row for row, each in found.items() if not each.slow))
    slow = Counter(each.slow for each in found.values() if each.slow)
    kinds = " and ".join(counted(slow[kind], kind) for kind in slow)
    told = f", {kinds} among them" if kinds else ""
    took = microseconds(sum(saved.values())) + gaps_text(gaps, len(found))
    arithmetic = f"at most the time of {counted(len(found), noun)}: {took}"

    def named(placed: Placed) -> str:
        text = name(placed)
        slow = found[placed.row].slow
        return f"{text}, a {slow}" if slow else text

    answer = check_savings(
        step, saved, share, sentence=sentence + told, arithmetic=arithmetic, name=named
    )
    return answer.saving(saved, arithmetic, waiting_ns=gaps)


def advice_for(weights: Iterable[tuple[str, float]], *, most: int = 2) -> str:
    """Return the advice that weighs most, and the next where it is worth a word, as a sentence.

    >>> advice_for([("drop moves", 3.0), ("split weights", 2.0), ("drop moves", 1.0), ("", 9.0)])
    'Drop moves; split weights.'
    """
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        if text:
            totals[text] += weight
    ranked = sorted(totals, key=lambda text: (-totals[text], text))
    enough = [text for text in ranked if totals[text] >= _WORTH_A_WORD * totals[ranked[0]]]
    text = "; ".join(enough[:most])
    return f"{text[0].upper()}{text[1:]}." if text else ""


#: Advice for less than this part of what weighs most is left to the page of a rule.
_WORTH_A_WORD: Final = 0.2
