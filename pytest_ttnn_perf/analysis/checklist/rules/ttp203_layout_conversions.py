"""Time spent on changing layouts."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import is_convolution
from pytest_ttnn_perf.analysis.checklist.removals import (
    Removal,
    advice_for,
    check_removals,
    removable,
)
from pytest_ttnn_perf.analysis.checklist.residency import round_trips
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, critical_ops, step_ns
from pytest_ttnn_perf.analysis.ops.conversions import neighbours, without_producer
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable, Signature
    from pytest_ttnn_perf.records.ttnn_report import Report

_CONVERSION: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)
_TILE: Final = 32
_ON_ROWS: Final = re.compile(r"arg_?max|top_?k|sampling|pool|grid_?sample|upsample", re.IGNORECASE)


@rule("TTP203", "layout-conversions", Severity.WARNING, Input.OPS, Input.REPORT)
def layout_conversions(
    step: OpTable | None,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    trips: Limit = Limit(0, "round trips", "a report has no times, so each is named"),
) -> Answer:
    """Time goes into changing layouts.

    ## What it finds
    The part of a step in ops that turn row-major tensors into tiles and back: tilize, untilize,
    to_layout. Not those before and after ops that work on rows by nature: argmax, top-k, pooling,
    grid sampling. A slice between two of them that picks every other element of a row counts as
    well. Of a report, which tells no times, round trips: a conversion right after the one
    that it undoes.

    ## Why it matters
    A conversion computes nothing. Each reads and writes a whole tensor.

    ## What to do
    Keep tensors in one layout from op to op: convert weights and tables once when they are loaded,
    ask for the layout an op works in, and remove conversions between ops that both take tiles.
    De-interleave weights when they are loaded instead of slicing every other element. Send images
    as bfloat16, row-major, with channels padded to 8 or 16.

    ## What it saves
    The time of the conversions and, inside replays, the gaps before them. Of a slow conversion of
    an input, its time less three times its bytes, without padding, by the bandwidth of DRAM.

    ## When it is no problem
    What comes row-major from the host has to be converted once, and so has what a step begins and
    ends with: not counted, unless it takes more than ten times its bytes by the bandwidth of DRAM.

    ## Where it looks
    OP CODE and the kernel time of the op table, on the slowest device. Without a table, the layouts
    of the tensors that a report database or a captured graph follows from call to call.
    """
    if step is None:
        assert report is not None
        return _round_trips(report, trips)
    found = _avoidable(step)
    took = sum(each.saved_ns for each in found.values())
    ops = critical_ops(step)
    strided = sum(_is_strided(ops, at) for at in range(len(ops)))
    conversions = counted(len(found) - strided, "layout conversion")
    if strided:
        conversions += f" and {counted(strided, 'strided slice')} between them"
    return check_removals(
        step,
        found,
        share,
        noun="op" if strided else "layout conversion",
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step goes into {conversions}",
    ).with_fix(_advice(step, found))


def _round_trips(report: Report, limit: Limit) -> Answer:
    found = [
        trip.told((trip.before.layout, trip.there.layout, trip.after.layout))
        for trip in round_trips(report)
        if trip.before.layout == trip.after.layout != trip.there.layout
    ]
    trips = counted(len(found), "round trip")
    sentence = f"{trips} of a layout, with nothing between"
    return limit.at_most(float(len(found)), sentence, map(Evidence, found))


def _avoidable(step: OpTable) -> dict[int, Removal]:
    """Return the conversions, without those that serve ops on rows."""
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    found = dict(removable(step, _converts))
    if any(_ON_ROWS.search(op) for op in {signature.op for signature in signatures}):
        for at, (row, _) in enumerate(ops):
            if row in found:
                places = neighbours(at, len(ops), signatures.__getitem__)
                beside = (short_code(signatures[place].op) for place in places if place is not None)
                if any(map(_ON_ROWS.search, beside)):
                    del found[row]
    slices = (at for at in range(len(ops)) if _is_strided(ops, at))
    return found | {ops[at].row: Removal(ops[at].op.kernel_ns) for at in slices}


def _is_strided(ops: Sequence[Placed], at: int) -> bool:
    """Tell whether an op between two conversions picks every other element, or fewer, of rows."""
    if not 0 < at < len(ops) - 1 or not short_code(ops[at].op.signature.op).startswith("Slice"):
        return False
    step = _STEP.search(ops[at].op.attributes)
    beside = (ops[at - 1].op.signature, ops[at + 1].op.signature)
    return step is not None and int(step[1]) > 1 and all(map(_converts, beside))


def _converts(signature: Signature) -> bool:
    return _CONVERSION.search(signature.op) is not None


#: The last of the steps of a slice.
_STEP: Final = re.compile(r"'step':\s*'\w*\(?\[(?:\d+[;,]\s*)*(\d+)\]")
_SLOW: Final = "convert inputs on the host, with a last extent that is a multiple of 32"
_IMAGE: Final = (
    "send images as bfloat16, row-major, with channels padded to 8 or 16, as convolutions take them"
)
_STRIDED: Final = "de-interleave the weights when loading, then slice tiles"
_TABLE: Final = "convert weights and tables once, when they are loaded"
_ALONE: Final = "ask the ops beside the conversions for the layout they give or take"


def _advice(step: OpTable, found: Mapping[int, Removal]) -> str:
    """Return what to do about what takes most: inputs, tables, or what lies between two ops."""
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    first_seen = without_producer(signatures)
    convolves = any(map(is_convolution, signatures))
    weights: list[tuple[str, float]] = []
    between: dict[str, float] = defaultdict(float)
    for at, (row, _) in enumerate(ops):
        if row not in found:
            continue
        saved_ns = found[row].saved_ns
        places = neighbours(at, len(ops), signatures.__getitem__)
        codes = [short_code(signatures[place].op) for place in places if place is not None]
        if any(_is_strided(ops, place) for place in (at - 1, at, at + 1)):
            weights.append((_STRIDED, saved_ns))
        elif found[row].slow:
            few = (signatures[at].inputs[0].logical or (_TILE,))[-1] < _TILE
            weights.append((_IMAGE if convolves and few else _SLOW, saved_ns))
        elif first_seen[at]:
            weights.append((_TABLE, saved_ns))
        elif len(codes) == 2:
            between[f"{codes[0]} and {codes[1]}"] += saved_ns
        else:
            weights.append((_ALONE, saved_ns))
    most = sorted(between, key=lambda ends: (-between[ends], ends))[:2]
    kept = f"keep one layout between {', and between '.join(most)}" if most else ""
    return advice_for([*weights, (kept, sum(between.values()))])
