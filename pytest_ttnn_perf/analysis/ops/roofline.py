"""Roofline of ops: bytes, operations, least time, and what bounds them."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.core.ops import CALLS, Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.core.ops import (
        OpGroup,
        OpGroups,
        OpTable,
        Signature,
        Tensor,
        Utilisation,
    )


#: Bytes of an element. Block formats share an exponent among 16 elements.
BYTES: Final = {
    "FLOAT32": 4.0,
    "INT32": 4.0,
    "UINT32": 4.0,
    "BFLOAT16": 2.0,
    "UINT16": 2.0,
    "BFLOAT8_B": 1.0625,
    "UINT8": 1.0,
    "BFLOAT4_B": 0.5625,
}
#: An op is bound by DRAM, or by computing, from this part of the peak on: tt-perf-report 1.4.
BOUND_FROM: Final = 0.65
#: A measured time may be that much shorter than the least: clocks and counters are not exact.
_TOLERANCE: Final = 1.05


def size_of(tensor: Tensor) -> float:
    """Return the bytes of a tensor, with padding; 0 if unknown."""
    return prod(tensor.padded) * BYTES.get(tensor.dtype, 0.0)


def in_dram(tensor: Tensor) -> bool:
    return tensor.memory.startswith("DRAM")


class Board(NamedTuple):
    """Peaks of a chip; ``tflops`` are per core and fidelity."""

    dram_gb_s: float
    dram_banks: int
    tflops: Mapping[str, float]

    @property
    def is_blackhole(self) -> bool:
        """True for chips whose banks several cores can read."""
        return self.tflops == _BOARDS["blackhole"].tflops


#: From tt-perf-report 1.4. An n300 has two chips, each as that of an n150. Of Blackhole it is the
#: p150: a p100 has 7 banks and 448 GB/s, and no capture names which of the two it is.
_BOARDS: Final = {
    "wormhole": Board(
        288.0, 12, {"LoFi": 262 / 72, "HiFi2": 148 / 72, "HiFi3": 74 / 54, "HiFi4": 74 / 72}
    ),
    "blackhole": Board(
        512.0,
        8,
        {"LoFi": 5.5296, "HiFi2": 5.5296 / 2, "HiFi3": 5.5296 / 3, "HiFi4": 5.5296 / 4},
    ),
}
_BOARDS["p100"] = _BOARDS["p100a"] = _BOARDS["blackhole"]._replace(dram_gb_s=448.0, dram_banks=7)


def board_of(table: OpTable) -> Board | None:
    """Return the peaks of a capture's architecture; None if unknown."""
    return _BOARDS.get(table.board or "") or board_of_arch(table.arch)


def board_of_arch(arch: str | None) -> Board | None:
    """Return the peaks of an architecture; None for one not known."""
    return _BOARDS.get((arch or "").lower().partition("_")[0])


class Bound(Enum):
    """Limits of an op; ``NEITHER`` is slow for another reason."""

    DRAM = "DRAM"
    COMPUTE = "compute"
    BOTH = "both"
    NEITHER = "slow"


class Work(NamedTuple):
    """Bytes and operations of an op; None if unknown.

    With ``at_most`` it reads a part of its operands, as of a cache, and bytes are an upper bound.
    ``again_bytes`` of them are read though they were read before: a matmul reads its second operand
    in so many ``passes``.
    """

    dram_bytes: float | None
    at_most: bool
    flops: float | None
    again_bytes: float = 0.0
    passes: int = 1


class Roofline(NamedTuple):
    """The time of an op and the least time of its work.

    What is ``stale`` has shapes that are not its own, and has no roofline: with them it would be
    faster than the chip. Those of a cached program are of the call that made it.
    Fractions that were ``measured`` count before those of the model.
    """

    kernel_ns: float
    work: Work
    dram_ns: float | None
    compute_ns: float | None
    stale: bool = False
    measured: Utilisation | None = None

    @property
    def dram_fraction(self) -> float | None:
        """The fraction of the DRAM bandwidth; None if unknown."""
        if self.measured and self.measured.dram is not None:
            return self.measured.dram
        if self.dram_ns is None or self.work.at_most or self.stale or not self.kernel_ns:
            return None
        return self.dram_ns / self.kernel_ns

    @property
    def compute_fraction(self) -> float | None:
        """The fraction of its cores' peak at its fidelity; None if unknown."""
        if self.measured and self.measured.fpu is not None:
            return self.measured.fpu
        if self.compute_ns is None or self.stale or not self.kernel_ns:
            return None
        return self.compute_ns / self.kernel_ns

    @property
    def least_ns(self) -> float | None:
        """The least time, reading everything once; None if unknown."""
        model = self._replace(measured=None) if self.measured else self
        if model.dram_fraction is None or model.compute_fraction is None:
            return None
        moved = self.work.dram_bytes or 0.0
        once = 1 - self.work.again_bytes / moved if moved else 1.0
        return max((self.dram_ns or 0.0) * once, self.compute_ns or 0.0)

    @property
    def bound(self) -> Bound | None:
        """The limit it is near; None if unknown."""
        dram, compute = self.dram_fraction, self.compute_fraction
        by_dram = dram is not None and dram >= BOUND_FROM
        by_compute = compute is not None and compute >= BOUND_FROM
        if by_dram and by_compute:
            return Bound.BOTH
        if by_dram or by_compute:
            return Bound.DRAM if by_dram else Bound.COMPUTE
        return None if dram is None or compute is None else Bound.NEITHER


@once_per_table
def rooflines(table: OpTable) -> Sequence[Roofline]:
    """Return the roofline of each row of a table.

    Ops of the host, and those of a chip or with operands that are not known, have one that says
    nothing.
    """
    columns, board = table.columns, board_of(table)
    kinds = zip(columns.signature, columns.attributes, columns.cores, columns.fidelity, strict=True)
    known: dict[tuple[int, int, int | None, int], _Least] = {}
    found = []
    for kind, host, kernel_ns in zip(kinds, columns.host, columns.kernel_ns, strict=True):
        least = _NOTHING if host else known.get(kind)
        if least is None:
            number, attributes, cores, fidelity = kind
            least = known[kind] = _least(
                board,
                table.signatures[number],
                table.attribute_texts[attributes] if attributes >= 0 else "",
                cores,
                table.fidelities[fidelity] if fidelity >= 0 else None,
            )
        found.append(Roofline(kernel_ns, *least, _is_too_fast(kernel_ns, *least)))
    if columns.measured:
        pairs = zip(found, columns.measured, strict=True)
        found = [line._replace(measured=measured) for line, measured in pairs]
    return tuple(found)


def group_rooflines(groups: Sequence[OpGroup], arch: str | None) -> Sequence[Roofline]:
    """Return the roofline of the mean op of each group.

    They do not mark an operand that is only where the result of an elementwise op goes: it counts
    as read.
    """
    board, found = board_of_arch(arch), []
    for group in groups:
        least = _least(board, group.signature, group.settings, group.cores, group.fidelity)
        mean_ns = group.total_ns / group.count
        found.append(Roofline(mean_ns, *least, _is_too_fast(mean_ns, *least)))
    return tuple(found)


def _is_too_fast(
    kernel_ns: float, work: Work, dram_ns: float | None, compute_ns: float | None
) -> bool:
    least = max(dram_ns or 0.0 if not work.at_most else 0.0, compute_ns or 0.0)
    return least > kernel_ns * _TOLERANCE and kernel_ns > 0


def roofline_of_groups(groups: OpGroups, arch: str | None) -> tuple[float, float] | None:
    """Return time and least time of groups whose work is known."""
    board = board_of_arch(arch)
    if board is None or groups.kernel_time == CALLS:
        return None
    kernel_ns, total_ns = 0.0, 0.0
    for group in groups.groups:
        work, dram_ns, compute_ns = _least(board, group.signature, "", group.cores, group.fidelity)
        if dram_ns is not None and compute_ns is not None and not work.at_most:
            kernel_ns += group.total_ns
            total_ns += group.count * max(dram_ns, compute_ns)
    return (kernel_ns, total_ns) if kernel_ns else None


_Least = tuple["Work", "float | None", "float | None"]
_NOTHING: Final[_Least] = (Work(None, at_most=False, flops=None), None, None)


def _least(
    board: Board | None,
    signature: Signature,
    attributes: str,
    cores: int | None,
    fidelity: str | None,
) -> _Least:
    work = work_of(signature, attributes)
    if board is None:
        return work, None, None
    dram_ns = None if work.dram_bytes is None else work.dram_bytes / board.dram_gb_s
    working = board.dram_banks * readers_per_bank(attributes) or cores
    tflops = board.tflops.get(fidelity or "", 0.0) * (working or 0)
    compute_ns = work.flops / (tflops * 1000) if work.flops is not None and tflops else None
    return work, dram_ns, compute_ns


def is_dram_sharded(attributes: str) -> bool:
    """Return whether a matmul reads DRAM-sharded weights."""
    return "DRAMShardedProgramConfig" in attributes


_READERS: Final = re.compile(r"num_workers_per_dram_bank'?\s*[=:]\s*'?(\d)")
#: A matmul behind a prefetcher reads its weights from a circular buffer in L1.
_PREFETCHED: Final = re.compile(r"gather_in0=(?:1|true)\b|num_global_cb_receivers=(?:[2-9]|1\d)")


def readers_per_bank(attributes: str) -> int:
    """Count the cores per bank that compute a DRAM-sharded matmul; else 0.

    The profiler's number of cores is that of the rectangle around all shards. Captures of before
    September 2026 do not have the setting: one.
    """
    if not is_dram_sharded(attributes):
        return 0
    found = _READERS.search(attributes)
    return max(1, int(found[1])) if found else 1


#: These touch a part of what their operands hold, and shapes do not show which.
_PARTIAL: Final = re.compile(
    r"sparse|gather|scatter|cache|decode|paged|rotary|embed|index|fill|sample|non_?zero|moe|"
    r"slice_?write|partial|joint|view",
    re.IGNORECASE,
)
#: These take so many tensors; one more is where their result goes, and is not read.
_TAKES: Final = {"Unary": 1, "Copy": 1, "Typecast": 1, "BinaryNg": 2, "Binary": 2, "Ternary": 3}
_SCALAR: Final = re.compile(r"'scalar':\s*'[-+.\d]")
_LOOKUP: Final = re.compile(r"^Embeddings?$")
_SLICE: Final = re.compile(r"^(?:Padded)?Slice$")
#: Attention over all of its keys, which are its second operand.
_ATTENTION: Final = re.compile(r"^(?:SDPA|ScaledDotProductAttention)$")
_CAUSAL: Final = re.compile(r"is_causal'?\s*[=:]\s*'?(?:true|1|on)\b")
_WINDOW: Final = re.compile(r"sliding_window(?:_size)?'?\s*[=:]\s*'?\d")


@lru_cache(maxsize=4096)
def work_of(signature: Signature, attributes: str = "") -> Work:
    code = short_code(signature.op)
    operands = (*_read(code, signature, attributes), *signature.outputs)
    if not operands or any(in_dram(each) and each.dtype not in BYTES for each in operands):
        return Work(None, at_most=False, flops=_flops(signature, attributes))
    if _LOOKUP.search(code) or _SLICE.search(code):
        moved = _picked_bytes(signature, looked_up=not _SLICE.search(code))
        return Work(moved, at_most=False, flops=None)
    passes = _passes(signature, attributes)
    taken = zip(signature.inputs, passes, strict=False)
    again = sum((size_of(each) * (times - 1) for each, times in taken if in_dram(each)), 0.0)
    moved = sum(size_of(tensor) for tensor in operands if in_dram(tensor)) + again
    at_most = (
        category_of(signature.op) is Category.COLLECTIVE
        or _PARTIAL.search(code) is not None
        or _reads_pages(signature)
        or _PREFETCHED.search(attributes) is not None
    )
    return Work(moved, at_most and moved > 0, _flops(signature, attributes), again, passes[1])


#: A core computes its part of a matmul's output block by block, if the blocks are given.
_PART: Final = re.compile(r"\b(per_core_[MN]|out_block_[hw])=(\d+)")


def _passes(signature: Signature, attributes: str) -> tuple[int, int]:
    """Return how often a matmul reads its first and its second operand.

    Block by block, a row of blocks needs all of the second operand, a column all of the first.
    """
    if category_of(signature.op) is not Category.MATMUL:
        return 1, 1
    sizes = {name: int(size) for name, size in _PART.findall(attributes)}
    rows = _blocks(sizes.get("per_core_M"), sizes.get("out_block_h"))
    columns = _blocks(sizes.get("per_core_N"), sizes.get("out_block_w"))
    return columns, rows * batches_apart(signature, attributes)


_APART: Final = re.compile(r"\bfuse_batch'?\s*[=:]\s*'?(?:0|false|off)\b", re.IGNORECASE)


def batches_apart(signature: Signature, attributes: str) -> int:
    """Return how many batches read the second operand again."""
    if len(signature.inputs) < 2 or not _APART.search(attributes):
        return 1
    first, second = (prod(tensor.padded[:-2]) for tensor in signature.inputs[:2])
    return first if second == 1 else 1


def _blocks(whole: int | None, block: int | None) -> int:
    return -(-whole // block) if whole and block else 1


def _read(code: str, signature: Signature, attributes: str) -> tuple[Tensor, ...]:
    takes = _TAKES.get(code)
    if takes == 2 and _SCALAR.search(attributes):
        takes = 1
    return signature.inputs[:takes]


def operands_read(signature: Signature, attributes: str) -> tuple[Tensor, ...]:
    """Return the inputs that an op reads, without preallocated outputs."""
    return _read(short_code(signature.op), signature, attributes)


def _picked_bytes(signature: Signature, *, looked_up: bool) -> float:
    """Return the bytes of a slice or a lookup."""
    picked = sum(prod(tensor.logical or tensor.padded) for tensor in signature.outputs)
    given = sum(size_of(tensor) for tensor in signature.outputs if in_dram(tensor))
    at = 1 if looked_up else 0
    others = (tensor for place, tensor in enumerate(signature.inputs) if place != at)
    source = signature.inputs[at : at + 1]
    read = sum(picked * BYTES[tensor.dtype] for tensor in source if in_dram(tensor))
    return given + read + sum(size_of(tensor) for tensor in others if in_dram(tensor))


def _reads_pages(signature: Signature) -> bool:
    """Return whether attention reads a paged cache."""
    inputs = signature.inputs
    return (
        category_of(signature.op) is Category.ATTENTION
        and len(inputs) > 1
        and inputs[0].padded[:1] != inputs[1].padded[:1]
    )


def _flops(signature: Signature, attributes: str) -> float | None:
    if len(signature.inputs) < 2:
        return None
    match category_of(signature.op):
        case Category.MATMUL if "sparse" not in signature.op.lower():
            return _matmul_flops(*signature.inputs[:2])
        case Category.CONV:
            weights = signature.inputs[1].padded
            given = prod(signature.outputs[0].padded) if signature.outputs else 0
            return 2.0 * given * weights[-2] if given and len(weights) > 1 else None
        case Category.ATTENTION if _ATTENTION.search(short_code(signature.op)):
            return _attention_flops(signature, attributes)
    return None


def _matmul_flops(first: Tensor, second: Tensor) -> float | None:
    """Return the operations on whole tiles, padding included."""
    if len(first.padded) < 2 or len(second.padded) < 2:
        return None
    *batches, rows, inner = first.padded
    *others, height, width = second.padded
    if inner == height:
        columns = width
    elif inner == width:  # the second is transposed
        columns = height
    elif rows == height:  # the first is
        rows, inner, columns = inner, rows, width
    else:
        return None
    return 2.0 * max(prod(batches), prod(others)) * rows * inner * columns


def _attention_flops(signature: Signature, attributes: str) -> float | None:
    tensors = signature.inputs[:3]
    if len(tensors) < 3 or any(len(tensor.padded) < 2 for tensor in tensors):
        return None
    if _reads_pages(signature) or _WINDOW.search(attributes):
        return None
    query, key, value = (tensor.padded for tensor in tensors)
    pairs = prod(query[:-1]) * key[-2]
    half = 0.5 if _CAUSAL.search(attributes) and query[-2] == key[-2] else 1.0
    return 2.0 * half * pairs * (query[-1] + value[-1])
