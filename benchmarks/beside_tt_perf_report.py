"""Totals, DRAM %, FLOPs % and bounds of real captures beside those of tt-perf-report.

    python -m venv venv && venv/bin/pip install tt-perf-report
    python benchmarks/beside_tt_perf_report.py --tool venv/bin/tt-perf-report [--out PAGE.md]

Both read each capture of the corpus, row by row: all ops, no window, devices not merged. Every
difference has a reason that is computed from the row, not assumed; one without a reason is a miss.
Without the corpus or the tool nothing is compared, which is said, and is no failure.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.ops.op_rows import op_rows, op_views
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, board_of, in_dram, work_of
from pytest_ttnn_perf.analysis.ops.settings import settings_in
from pytest_ttnn_perf.records.ops import Category, category_of
from tests.harness.corpus import corpus_folder, op_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.op_rows import OpRow
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor

ROW_BY_ROW: Final = (
    "--ignore-signposts", "--no-merge-devices", "--tracing-mode", "--raw-op-codes",
)  # fmt: skip
QUIET: Final = ("--no-summary", "--no-advice", "--no-color")
#: Percentages that are printed alike are the same.
SAME: Final = 0.1
BOUNDS: Final = {"DRAM": "DRAM", "FLOP": "compute", "BOTH": "both", "SLOW": "slow"}

MODELLED: Final = "only ours: it has no model of this op, or, of a convolution, none of its DRAM"
ARCH: Final = "only theirs: the capture names no architecture, and it takes Wormhole"
BLOCKS: Final = "block formats: 1.0625 and 0.5625 bytes per element, where it takes 1 and 0.5"
AGAIN: Final = (
    "a matmul that computes its output block by block (`out_block_h` below `per_core_M`) reads its "
    "weights once for each row of blocks; it counts them once"
)
MORE: Final = "operands beyond two inputs and an output, such as a bias, which it leaves out"
INNER: Final = "a convolution computes the inner dimension as its weights are padded"
STALE: Final = "stale shapes: with them the op would be faster than the chip, so we say nothing"
PART: Final = "the op reads a part of its operands that shapes do not tell, so we say nothing"
FOLLOWS: Final = "follows from DRAM % or FLOPs %, which differ as above"
UNEXPLAINED: Final = "UNEXPLAINED"
WHAT: Final = ("DRAM %", "FLOPs %", "bound")


class Beside(NamedTuple):
    """One file: totals in ms, and per figure how many rows are the same, or differ and why."""

    name: str
    ops: tuple[int, int]
    total_ms: tuple[float, float]
    same: Mapping[str, int]
    reasons: Mapping[str, Counter[str]]
    default_ms: float | None
    steps_ms: Sequence[tuple[str, float]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Real captures beside tt-perf-report")
    parser.add_argument("--tool", default="tt-perf-report", help="its command")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    tool = shutil.which(options.tool)
    files = op_tables()
    if tool is None or not files:
        missing = f"no captures in {corpus_folder()}" if tool else f"no {options.tool}"
        print(f"SKIPPED, NOTHING WAS COMPARED: {missing}")
        return 0
    found: list[Beside] = []
    refused: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            beside = compare(tool, file, Path(folder))
            (refused.append(file.stem) if beside is None else found.append(beside))
    text = page(found, refused)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    unexplained = sum(counts[UNEXPLAINED] for beside in found for counts in beside.reasons.values())
    apart = [beside.name for beside in found if not _equal(*beside.total_ms)]
    if unexplained or apart:
        print(f"A MISS: {unexplained} differences without a reason; other totals in {apart}")
    return 1 if unexplained or apart else 0


def compare(tool: str, file: Path, folder: Path) -> Beside | None:
    """Return a file beside the tool; None if the tool cannot read it."""
    theirs = report(tool, file, folder, *ROW_BY_ROW)
    if theirs is None:
        return None
    table = read_ops_csv(file)
    ours = op_rows(table)
    timed = [row for row in theirs if row["Device Time"]]
    same: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {what: Counter() for what in WHAT}
    pairs = list(_pairs(ours, timed))
    reasons["bound"][UNEXPLAINED] += len(timed) - len(pairs)
    for place, row in pairs:
        for what, reason in differences(table, table.op(place), ours[place], row):
            if reason is None:
                same[what] += 1
            else:
                reasons[what][reason] += 1
    default = report(tool, file, folder)
    return Beside(
        file.stem,
        (sum(row.device >= 0 for row in ours), len(timed)),
        (sum(row.kernel_ns for row in ours) / 1e6, _total_ms(timed)),
        same,
        reasons,
        None if default is None else _total_ms(default),
        [(v.region.name or v.region.basis.value, v.kernel_ns / 1e6) for v in op_views(table, ours)],
    )


def report(tool: str, file: Path, folder: Path, *options: str) -> list[dict[str, str]] | None:
    out = folder / "out.csv"
    out.unlink(missing_ok=True)
    command = [tool, str(file), "--csv", str(out), *QUIET, *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode or not out.exists():
        return None
    with out.open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def _total_ms(rows: Sequence[Mapping[str, str]]) -> float:
    return sum(float(row["Device Time"]) for row in rows if row["Device Time"]) / 1000


def _pairs(
    ours: Sequence[OpRow], theirs: Sequence[dict[str, str]]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of both sides that are one op: of one device, code and time, in order."""
    waiting: dict[tuple[int, str, int], list[int]] = defaultdict(list)
    for place, row in enumerate(ours):
        waiting[row.device, row.op, round(row.kernel_ns)].append(place)
    for theirs_row in theirs:
        time_ns = round(float(theirs_row["Device Time"]) * 1000)
        places = waiting[int(float(theirs_row["Device"])), theirs_row["Raw OP Code"], time_ns]
        if places:
            yield places.pop(0), theirs_row


def differences(
    table: OpTable, op: Op, ours: OpRow, theirs: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    """Yield each figure, and why it differs; None if it does not."""
    dram = _reason(
        _percent(ours.dram_fraction),
        _number(theirs["DRAM %"]),
        lambda: _dram_reason(table, op, ours, _number(theirs["DRAM %"])),
    )
    flops = _reason(
        _percent(ours.compute_fraction),
        _number(theirs["FLOPs %"]),
        lambda: _flops_reason(table, op, ours, _number(theirs["FLOPs %"])),
    )
    yield "DRAM %", dram
    yield "FLOPs %", flops
    if BOUNDS.get(theirs["Bound"]) == ours.bound:
        yield "bound", None
    elif not theirs["Bound"]:
        yield "bound", MODELLED
    else:
        yield "bound", FOLLOWS if dram or flops else UNEXPLAINED


def _reason(ours: float | None, theirs: float | None, why: object) -> str | None:
    # It leaves out what is nothing.
    if (ours or 0.0) == (theirs or 0.0) == 0.0:
        return None
    if ours is not None and theirs is not None and abs(ours - theirs) <= SAME:
        return None
    assert callable(why)
    told: str = why()
    return told


def _dram_reason(table: OpTable, op: Op, ours: OpRow, theirs: float | None) -> str:
    if theirs is None:
        matmul = "Matmul" in op.signature.op
        return UNEXPLAINED if matmul and ours.dram_fraction else MODELLED
    if ours.dram_fraction is None:
        return _silence(table, op, ours)
    board = board_of(table)
    three = (*op.signature.inputs[:2], *op.signature.outputs[:1])
    nominal = sum(map(_nominal_bytes, three))
    if board is None or not _equal(nominal / op.kernel_ns / board.dram_gb_s * 100, theirs):
        return UNEXPLAINED
    exact = sum(_elements(each) * BYTES[each.dtype] for each in three if in_dram(each))
    if work_of(op.signature, op.attributes).again_bytes:
        return AGAIN
    if _equal(exact, ours.dram_bytes or 0.0):
        return BLOCKS
    every = [each for each in (*op.signature.inputs, *op.signature.outputs) if in_dram(each)]
    read = sum(_elements(each) * BYTES[each.dtype] for each in every)
    return MORE if _equal(read, ours.dram_bytes or 0.0) else UNEXPLAINED


def _flops_reason(table: OpTable, op: Op, ours: OpRow, theirs: float | None) -> str:
    if theirs is None:
        return UNEXPLAINED if "Matmul" in op.signature.op else MODELLED
    if ours.compute_fraction is None:
        return _silence(table, op, ours)
    height, _, width = dict(settings_in(op.attributes)).get("window_hw", "").partition("x")
    if category_of(op.signature.op) is not Category.CONV or not width:
        return UNEXPLAINED
    # It takes channels times window, and that may be less than the weights have rows.
    given, weights = op.signature.inputs[:2]
    inner = given.padded[-1] * int(height) * int(width)
    as_padded = theirs * weights.padded[-2] / inner
    return INNER if _equal(as_padded, ours.compute_fraction * 100) else UNEXPLAINED


def _silence(table: OpTable, op: Op, ours: OpRow) -> str:
    if board_of(table) is None:
        return ARCH
    if ours.stale:
        return STALE
    return PART if work_of(op.signature, op.attributes).at_most else UNEXPLAINED


def _elements(tensor: Tensor) -> int:
    count = 1
    for extent in tensor.padded:
        count *= extent
    return count


def _nominal_bytes(tensor: Tensor) -> float:
    if not in_dram(tensor):
        return 0.0
    digits = "".join(filter(str.isdigit, tensor.dtype))
    return _elements(tensor) * int(digits) / 8


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else fraction * 100


def _number(text: str) -> float | None:
    return float(text) if text else None


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= 0.002 * max(abs(one), abs(other), 0.001)


PAGE: Final = """\
# Beside tt-perf-report

What [`ttnn-perf show --ops`](../reference/cli.md#show) says of each op of the corpus, row by row
beside tt-perf-report 1.4 (all ops, no window, devices not merged). A figure is the same if it
differs by at most {same} percentage points. Every other row has a reason, computed from its
operands; a difference without one, or another total, fails. The page is written by

```text
python -m venv venv && venv/bin/pip install tt-perf-report
python benchmarks/beside_tt_perf_report.py --tool venv/bin/tt-perf-report --out PAGE
```

{totals}

tt-perf-report does not read {refused}: columns or an architecture that it does not know.

## Why figures differ

{reasons}

Of a matmul with DRAM-sharded weights both count one core per bank of DRAM (12 of a Wormhole chip, 8
of a p150), not the profiler's `CORE COUNT`. Both take the peaks of a p150 for Blackhole: a capture
does not tell it from a p100, which has 448 GB/s. Both say bound from 65 % of a peak on; we also say
it of an op of which one figure is known, and is above.

## What is summed up without options

tt-perf-report takes what follows the last signpost, which is nothing where that ends a window, and
one row for all devices: the longest, of collectives the mean. All replays of a trace are in it.
`show --ops` takes one step of each region, as its slowest device ran it: that is what the gate
judges.

{steps}
"""


def page(found: Sequence[Beside], refused: Sequence[str]) -> str:
    """Return the page."""
    figures = " | ".join(f"{what} same" for what in WHAT)
    totals = [
        f"| capture | ops, ours and theirs | total ms, ours and theirs | {figures} | differ |"
    ]
    totals.append("|---|---|---|---|---|---|---|")
    steps = ["| capture | theirs, ms | ours: a step of each region, ms |", "|---|---|---|"]
    for each in found:
        same = " | ".join(str(each.same[what]) for what in WHAT)
        differ = sum(counts.total() for counts in each.reasons.values())
        times = "{:.3f}, {:.3f}".format(*each.total_ms)
        totals.append(
            f"| `{each.name}` | {each.ops[0]}, {each.ops[1]} | {times} | {same} | {differ} |"
        )
        theirs = "-" if each.default_ms is None else f"{each.default_ms:.3f}"
        ours = ", ".join(f"{name} {ms:.3f}" for name, ms in each.steps_ms)
        steps.append(f"| `{each.name}` | {theirs} | {ours} |")
    reasons = ["| figure | reason | rows |", "|---|---|---|"]
    for what in WHAT:
        counts: Counter[str] = Counter()
        for each in found:
            counts.update(each.reasons[what])
        reasons += [f"| {what} | {why} | {count} |" for why, count in counts.most_common() if count]
    return PAGE.format(
        same=SAME,
        totals="\n".join(totals),
        refused=", ".join(f"`{name}`" for name in refused) or "nothing",
        reasons="\n".join(reasons),
        steps="\n".join(steps),
    )


if __name__ == "__main__":
    sys.exit(main())
