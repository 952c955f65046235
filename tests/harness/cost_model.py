"""A chip whose costs are known: models with planted inefficiencies, and what mending them brings.

What ops take here follows from efficiencies that are drawn for each chip, and from noise. No rule
knows them, and no figure of a rule is among them but the peaks of the chip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from tests.rules.tables import Op, OpTable, op, table, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

CORES = 110
DRAM_GB_S, BANKS, LOFI_TFLOPS = 512.0, 8, 5.5296
ROWS = 32
MANY_ROWS = 4096
SHARDED = "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig()'}"
REUSED = "{'program_config': 'MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w=8)'}"
BYTES = {"BFLOAT16": 2.0, "BFLOAT8_B": 1.0625}


@dataclass(frozen=True, slots=True)
class Chip:
    """How far it is from its peaks, in parts of them, and what comes beside."""

    sharded: float
    interleaved: float
    computing: float
    beside_ns: float
    exchange_ns: float
    fused_ns: float
    noise: float


def chip(rng: Random) -> Chip:
    return Chip(
        sharded=rng.uniform(0.65, 0.95),
        interleaved=rng.uniform(0.25, 0.6),
        computing=rng.uniform(0.55, 0.95),
        beside_ns=rng.uniform(2_000, 8_000),
        exchange_ns=rng.uniform(3_000, 12_000),
        fused_ns=rng.uniform(500, 6_000),
        noise=rng.uniform(0.01, 0.05),
    )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a model; ``planted`` is the rule that its inefficiency is for, "" without one.

    ``size`` is what it has to do: the width of weights, or nanoseconds on one core. What ``stays``
    cannot be mended, though it looks as if it could.
    """

    kind: str
    size: float
    planted: str = ""
    stays: bool = False


def model(rng: Random) -> list[Part]:
    """Return a decode step: layers with some of the inefficiencies."""
    planted = set(rng.sample(["TTP101", "TTP103", "TTP203", "TTP302", "TTP305", "TTP310",
                              "TTP311"], rng.randint(3, 6)))  # fmt: skip
    parts: list[Part] = []

    def add(kind: str, size: float, code: str = "") -> None:
        parts.append(Part(kind, size, code if code in planted else "", rng.random() < 0.15))

    for _ in range(rng.randint(2, 5)):
        width = rng.choice([2048, 4096, 5376, 8192])
        add("norm", rng.uniform(20_000, 60_000), "TTP305")
        add("sharded matmul", width, rng.choice(["TTP311", "TTP311", "TTP101"]))
        if "TTP310" in planted:
            add("activation", rng.uniform(6_000, 15_000), "TTP310")
        for code, kind in (("TTP203", "conversion"), ("TTP302", "move")):
            if code in planted:
                add(kind, rng.uniform(5_000, 30_000), code)
        add("elementwise", rng.uniform(3_000, 10_000))
        add("product", rng.choice([1024, 2048]), "TTP103")
    return parts


def mended(parts: Sequence[Part], code: str) -> list[Part]:
    """Return a model after somebody did as a rule says, wherever that can be done."""
    gone = {"activation", "conversion", "move"}
    return [
        replace(part, planted="", kind=f"no {part.kind}" if part.kind in gone else part.kind)
        if part.planted == code and not part.stays
        else part
        for part in parts
    ]


def time_ns(part: Part, on: Chip) -> float:
    """Return what a part takes, before noise."""
    size = part.size
    if part.kind == "sharded matmul":
        element = BYTES["BFLOAT16" if part.planted == "TTP101" else "BFLOAT8_B"]
        reading = size * size * element / DRAM_GB_S
        if part.planted == "TTP311":
            return reading / on.interleaved + on.beside_ns
        passes = 2 if part.planted == "TTP101" else 1
        computing = 2 * ROWS * size * size * passes / (LOFI_TFLOPS * 1000 * BANKS)
        return max(reading / on.sharded, computing / on.computing) + on.beside_ns
    if part.kind == "product":
        passes = 4 if part.planted else 2
        computing = 2 * MANY_ROWS * size * size * passes / (LOFI_TFLOPS * 1000 * CORES)
        return computing / on.computing + on.beside_ns
    if part.kind == "norm":
        return size if part.planted else size / 32 + on.exchange_ns
    return on.fused_ns if part.kind == "no activation" else 0.0 if "no " in part.kind else size


def step_ns(parts: Sequence[Part], on: Chip) -> float:
    """Return what a step takes, as many measurements would tell it."""
    return sum(time_ns(part, on) for part in parts)


def _times_ns(parts: Sequence[Part], on: Chip, rng: Random, slower: float = 1.0) -> list[float]:
    return [time_ns(part, on) * slower * rng.lognormvariate(0, on.noise) for part in parts]


def capture(parts: Sequence[Part], on: Chip, rng: Random, *, steps: int = 1) -> OpTable:
    """Return what a profiler would tell of so many steps: several are replays of a trace."""
    rows = []
    for number in range(1, steps + 1):
        times = _times_ns(parts, on, rng)
        own = [_op(part, ns) for part, ns in zip(parts, times, strict=True)]
        rows += [row._replace(trace=1, replay=number) if steps > 1 else row for row in own]
    return table(*rows, arch="blackhole", available_cores=CORES)


#: What processes differ in, beside their steps.
PROCESSES = 0.003


def measured_ns(
    parts: Sequence[Part], on: Chip, rng: Random, *, steps: int = 3, rounds: int = 3
) -> float:
    """Return what ``ttnn-perf try`` would tell of a model: steps in each of some processes."""
    processes = (rng.lognormvariate(0, PROCESSES) for _ in range(rounds))
    return median(
        median(sum(_times_ns(parts, on, rng, slower)) for _ in range(steps)) for slower in processes
    )


def _op(part: Part, ns: float) -> Op:
    width = int(part.size) if "matmul" in part.kind or part.kind == "product" else 4096
    row = tensor(1, 1, ROWS, width, memory="L1_WIDTH_SHARDED")
    if part.kind == "sharded matmul":
        slow = part.planted == "TTP311"
        dtype = "BFLOAT16" if part.planted == "TTP101" else "BFLOAT8_B"
        placed = "DRAM_INTERLEAVED" if slow else "DRAM_WIDTH_SHARDED"
        weights = tensor(1, 1, width, width, dtype=dtype, memory=placed)
        fidelity = "LoFi" if dtype == "BFLOAT8_B" and not slow else "HiFi2"
        config = REUSED if slow else SHARDED
        return op("Matmul", [row, weights], [row], ns=ns, cores=CORES, fidelity=fidelity,
                  attributes=config)  # fmt: skip
    if part.kind == "product":
        rows = tensor(1, 1, MANY_ROWS, width, memory="L1_BLOCK_SHARDED")
        weights = tensor(1, 1, width, width, dtype="BFLOAT8_B")
        fidelity = "HiFi4" if part.planted else "HiFi2"
        return op("Matmul", [rows, weights], [rows], ns=ns, cores=CORES, fidelity=fidelity,
                  attributes=REUSED)  # fmt: skip
    if part.kind == "norm":
        return op("LayerNorm", [row], [row], ns=ns, cores=1 if part.planted else 32)
    if part.kind == "conversion":
        return op("Untilize", [row], [row._replace(layout="ROW_MAJOR")], ns=ns, cores=CORES)
    if part.kind == "move":
        moved = row._replace(memory="L1_HEIGHT_SHARDED")
        return op("Reshard", [row], [moved], ns=ns, cores=CORES)
    if part.kind == "activation":
        gelu = "{'op_chain': 'UnaryWithParam(op_type=UnaryOpType::GELU)'}"
        return op("Unary", [row], [row], ns=ns, cores=CORES, attributes=gelu)
    return op("BinaryNg", [row, row], [row], ns=ns, cores=CORES)
