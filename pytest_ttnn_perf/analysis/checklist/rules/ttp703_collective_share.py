"""Time that links take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import whole
from pytest_ttnn_perf.analysis.checklist.meshes import ops_on_mesh
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.conversions import producers
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, size_of
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.meshes import OnMesh
    from pytest_ttnn_perf.records.ops import OpTable, Signature

_NARROW: Final = "BFLOAT8_B"
#: What a collective takes however little it exchanges: real ones of a few KiB take 9 to 11 µs.
_LATENCY_NS: Final = 10_000.0
#: What one all-reduce exchanges in L1 in one go; a longer prompt takes two steps anyway.
_SMALL_BYTES: Final = 2**20
#: How far behind a reduce-scatter its all-gather may stand.
_NEAR: Final = 5
_SCATTER: Final = re.compile(r"reduce_?scatter", re.IGNORECASE)
_GATHER: Final = re.compile(r"all_?gather", re.IGNORECASE)
#: Ops that give the numbers that they take.
_PASSES: Final = re.compile(r"concat|typecast|tilize|reshape|view|copy|to_|slice|pad", re.I)
_PLACES: Final = re.compile(r"^(?:ArgMax|TopK|Sampling|Sort|PlusOne)", re.IGNORECASE)
OTHER_OPS: Final = "devices ran different ops"


@rule("TTP703", "collective-share", Severity.WARNING, Input.OPS)
def collective_share(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Devices exchange more, or more often, than they have to.

    ## What it finds
    What ops that exchange data among devices take on the device that comes last, and so waits for
    links alone: all-gather, reduce-scatter, all-reduce, all-to-all, sending and receiving. It finds
    wide formats, and a reduce-scatter with the all-gather of the same small tensor behind it. A
    collective that is fused into a matmul counts as a matmul.

    ## Why it matters
    More devices do not make a collective faster.

    ## What to do
    Exchange bfloat8_b, use all links with `num_links`, replace each reduce-scatter + all-gather
    pair with one `all_reduce_async` in L1, fuse the collective with the matmul beside it, and cut
    tensors along the dimension that needs fewer exchanges.

    ## What it saves
    Of each collective what the fastest device takes beyond 10 µs × (1 − 1.0625 ÷ bytes of an
    element): what bfloat8_b leaves out. An all-gather of up to 1 MiB right behind a reduce-scatter
    is saved as a whole: one all-reduce does both. What devices wait for each other is imbalance,
    and for TTP704.

    ## When it is no problem
    Where the sum has to be exact. Exchanges of a few KiB take as long in any format. Integers, and
    what comes from a search for places, such as tokens, keep their format.

    ## Where it looks
    OP CODE, `num_links`, the data type of inputs and the kernel time of the op table, on all
    devices.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(OTHER_OPS)
    collectives = [each for each in ops if each.is_collective]
    took = sum(each.fastest_ns for each in collectives)
    saved, joined = _saved(ops)
    time = percent(took / (step_ns(step) or 1.0))
    exchanges = counted(len(collectives), "collective")
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{time} of a step goes into {exchanges}, excluding time spent waiting for other "
        "devices",
        arithmetic=f"bfloat8_b beyond 10 µs each, all-reduce for small pairs: "
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))}",
    ).with_fix(
        advice_for(
            (_ONE_OP if each.row in joined else _narrow(each), saved[each.row])
            for each in collectives
            if each.row in saved
        )
    )


_ONE_OP: Final = "replace each reduce-scatter + all-gather pair with one `all_reduce_async` in L1"


def _narrow(collective: OnMesh) -> str:
    one_link = whole(collective.op.attributes, "num_links") == 1
    return "exchange bfloat8_b" + (", over all links (`num_links`)" if one_link else "")


def _saved(ops: Sequence[OnMesh]) -> tuple[dict[int, float], set[int]]:
    """Return what each collective would save, and those whose work one before them can do."""
    saved: dict[int, float] = {}
    joined: set[int] = set()
    scattered: int | None = None
    for at, each in enumerate(ops):
        if not each.is_collective:
            continue
        signature = each.op.signature
        code = short_code(signature.op)
        part = 0.0 if _holds_places(ops, at) else _narrower(signature)
        beyond = max(0.0, each.fastest_ns - _LATENCY_NS) * part
        gathers = _GATHER.search(code) is not None
        if gathers and scattered is not None and at - scattered <= _NEAR and _is_small(signature):
            beyond = each.fastest_ns
            joined.add(each.row)
        scattered = at if _SCATTER.search(code) else None
        if beyond:
            saved[each.row] = beyond
    return saved, joined


def _holds_places(ops: Sequence[OnMesh], at: int) -> bool:
    """Tell whether an op exchanges what a search gave: places, which have to stay exact."""
    signatures = [each.op.signature for each in ops[: at + 1]]
    nearest = producers(at, signatures.__getitem__)
    for _ in range(_NEAR):
        if any(_gives_places(signatures[place]) for place in nearest):
            return True
        through = [place for place in nearest if _PASSES.search(signatures[place].op)]
        nearest = [each for place in through for each in producers(place, signatures.__getitem__)]
    return False


def _gives_places(signature: Signature) -> bool:
    return _PLACES.search(short_code(signature.op)) is not None or _is_whole_number(signature)


def _is_whole_number(signature: Signature) -> bool:
    return any("INT" in tensor.dtype for tensor in (*signature.inputs, *signature.outputs))


def _is_small(signature: Signature) -> bool:
    return sum(map(size_of, signature.outputs)) <= _SMALL_BYTES


def _narrower(signature: Signature) -> float:
    """Return what part of its bytes an exchange saves in bfloat8_b; integers have to stay."""
    if _is_whole_number(signature):
        return 0.0
    format_bytes = BYTES.get(signature.inputs[0].dtype, 0.0) if signature.inputs else 0.0
    return max(0.0, 1 - BYTES[_NARROW] / format_bytes) if format_bytes else 0.0
