"""Products, and the cores that they and other ops use."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.operands import PRODUCTS, weights_by_row
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    critical_ops,
)
from pytest_ttnn_perf.analysis.ops.names import (
    is_grid,
    setting,
    settings_in,
    whole,
    working_cores,
)
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import (
    batches_apart,
    board_of,
    board_of_arch,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.ops import Category
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Board, Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor


#: A DRAM-sharded matmul takes so long beside the longer of reading and computing; reading takes so
#: much of its time by the peak, with one reader for each bank and with more, and computing so much.
#: Fitted to 53 shapes of real captures on Blackhole: half of them within 2.2 %, nine tenths 11 %.
_BESIDE_NS: Final = 4_500.0
READ, READ_BY_MORE, COMPUTE = 1.01, 1 / 0.9, 1.18
#: Who reads at this part of the bandwidth is not far below it.
_FAR_BELOW: Final = 0.75
#: DRAM-sharded matmuls take the rows of one tile, as a decode step has them.
_FEW_ROWS: Final = 32
#: The readers of a bank that Blackhole can have; each reads so many bytes of a row, or slowly.
_READERS: Final = (1, 2, 3)
_READER_BYTES: Final = 4096.0
#: Of forms of one matmul that differ by less, the one that changes least.
_ALIKE: Final = 1.05


_BOARDS: Final = [board for board in map(board_of_arch, ("wormhole", "blackhole")) if board]
#: What a core of any known chip computes at most, by fidelity.
_FASTEST: Final = {name: max(board.tflops[name] for board in _BOARDS) for name in _BOARDS[0].tflops}
#: The rows of a tile.
TILE_ROWS: Final = 32


class Product(NamedTuple):
    """A matmul or convolution of a step, with its weights in DRAM."""

    row: int
    op: Op
    line: Roofline
    weights: Tensor | None

    @property
    def first(self) -> Tensor | None:
        """The first operand."""
        return self.op.signature.inputs[0] if self.op.signature.inputs else None

    @property
    def reads_again(self) -> str:
        """Remedy if most of its reads are repeated; "" if not."""
        moved, again = self.line.work.dram_bytes or 0.0, self.line.work.again_bytes
        if self.weights is None or again <= moved / 2:
            return ""
        remedy = (
            "raise `out_block_h` towards `per_core_M`, with a smaller `out_block_w` if L1 is full"
        )
        if batches_apart(self.op.signature, self.op.attributes) > 1:
            remedy = "lay the batches out as rows of one matrix, or set `fuse_batch`"
        return f"{remedy}: the weights are read {self.line.work.passes} times"

    @property
    def least_ns(self) -> float | None:
        """The least time; on an unknown chip, the ideal of the profiler.

        The profiler counts a byte for each element of bfloat4_b: that is no ideal. It counts all
        cores of a chip as well; on those in use none is faster than on the fastest chip known.
        """
        work, ideal_ns = self.line.work, self.op.ideal_ns
        if self.line.dram_ns is not None or work.dram_bytes is None or work.at_most:
            return self.line.least_ns
        narrow = self.weights is not None and self.weights.dtype == "BFLOAT4_B"
        if narrow or ideal_ns is None or not self.op.cores:
            return None
        tflops = _FASTEST.get(self.op.fidelity or "", _FASTEST["LoFi"]) * self.op.cores
        return max(ideal_ns, (work.flops or 0.0) / (tflops * 1000))


@once_per_table
def products_of(step: OpTable) -> Sequence[Product]:
    """Return the matmuls and convolutions of the device that takes longest."""
    lines, weights = rooflines(step), weights_by_row(step)
    return tuple(
        Product(row, op, lines[row], weights.get(row))
        for row, op in critical_ops(step)
        if op.signature.category in PRODUCTS
    )


def matmuls_of(step: OpTable) -> Sequence[Product]:
    """Return the dense matmuls of the device that takes longest."""
    return tuple(each for each in products_of(step) if is_dense_matmul(each.op.signature))


def unknown_chip(table: OpTable) -> str:
    """Reason of rules that need the peaks of a chip."""
    return f"the peaks of {table.arch or 'an unnamed architecture'} are not known"


def no_roofline(table: OpTable, noun: str) -> str:
    """Say why nothing can be compared with the roofline of some products."""
    known = board_of(table) is not None
    return f"no {noun} gives its operands, cores and fidelity" if known else unknown_chip(table)


def best_known(table: OpTable) -> str:
    """Return what ops are compared with, in words."""
    return "the profiler's ideal" if board_of(table) is None else "the roofline"


def shortfall_ns(product: Product, efficiency: float) -> float:
    """Time above a part of the roofline; 0 if unknown."""
    if product.least_ns is None:
        return 0.0
    return max(0.0, product.op.kernel_ns - max(product.least_ns / efficiency, LAUNCH_NS))


class ShardedForm(NamedTuple):
    """A DRAM-sharded matmul: its settings, and its time by them."""

    fidelity: str
    readers: int
    ns: float
    computes: bool


def sharded_form(
    matmul: Product, board: Board, *, fidelity: str = "", readers: int = 1
) -> ShardedForm | None:
    """Return a matmul with DRAM-sharded weights; None if impossible.

    Each reader of a bank computes what it reads, a part of the columns.
    """
    weights, first = matmul.weights, matmul.first
    if weights is None or first is None or not matmul.line.work.flops or matmul.line.stale:
        return None
    inner, columns = (extent // TILE_ROWS for extent in weights.padded[-2:])
    many = prod(first.padded[:-1]) > _FEW_ROWS or prod(weights.padded[:-2]) > 1
    if many or columns < board.dram_banks * readers:
        return None
    own = fidelity or matmul.op.fidelity or ""
    tflops = board.tflops.get(own, board.tflops["HiFi2"])
    part = -(-columns // (board.dram_banks * readers))
    reading = (READ if readers == 1 else READ_BY_MORE) * size_of(weights) / board.dram_gb_s
    computing = COMPUTE * inner * part * 2 * TILE_ROWS**3 / (tflops * 1000)
    return ShardedForm(own, readers, _BESIDE_NS + max(reading, computing), computing > reading)


def best_form(matmul: Product, board: Board) -> ShardedForm | None:
    """Return the quickest DRAM-sharded form, changing as little as possible.

    More readers for a bank are of Blackhole, want columns that divide among them, and help only
    where one reader computes longer than it reads. Weights of a block format stand LoFi.
    """
    weights, own = matmul.weights, matmul.op.fidelity or "HiFi2"
    if weights is None:
        return None
    fidelities = dict.fromkeys((own, "LoFi" if weights.dtype.endswith("_B") else own))
    forms: list[ShardedForm] = []
    for fidelity in fidelities:
        for readers in _READERS if board.is_blackhole else (1,):
            of_bank = weights.padded[-1] // TILE_ROWS / board.dram_banks
            row_bytes = of_bank / readers * size_of(weights) / prod(weights.padded) * TILE_ROWS**2
            legal = readers == 1 or (of_bank % readers == 0 and row_bytes >= _READER_BYTES)
            form = sharded_form(matmul, board, fidelity=fidelity, readers=readers)
            if legal and form is not None:
                forms.append(form)
            if form is None or not form.computes:
                break
    least = min((form.ns for form in forms), default=0.0)
    return next((form for form in forms if form.ns <= _ALIKE * least), None)


def gains_from_dram_sharding(matmul: Product, board: Board | None) -> float:
    """Saving by DRAM-sharded weights, of a matmul that reads slowly."""
    if board is None or matmul.weights is None or is_dram_sharded(matmul.op.attributes):
        return 0.0
    took, form = matmul.op.kernel_ns, best_form(matmul, board)
    if form is None or size_of(matmul.weights) >= _FAR_BELOW * board.dram_gb_s * took:
        return 0.0
    return max(0.0, took - form.ns)


#: Reading a block of DRAM-sharded weights hides the hop of the next one from so long on.
_HIDES_NS: Final = 1_300.0
#: Wider blocks of the inner dimension want much of L1.
_WIDEST: Final = 16


def inner_block_for(matmul: Product, board: Board, readers: int, *, least: int = 1) -> int | None:
    """Return the least `in0_block_w` of a DRAM-sharded form that hides its hops."""
    if matmul.weights is None:
        return None
    inner, columns = (extent // TILE_ROWS for extent in matmul.weights.padded[-2:])
    tile_ns = size_of(matmul.weights) / (inner * columns) / board.dram_gb_s * board.dram_banks
    block_ns = tile_ns * columns / (board.dram_banks * readers)
    widths = [width for width in range(least, _WIDEST + 1) if inner % width == 0] or [1]
    return next((each for each in widths if each * block_ns >= _HIDES_NS), widths[-1])


#: What reading interleaved weights reaches of the bandwidth of Blackhole, in large blocks.
_INTERLEAVED_AT: Final = {"BFLOAT4_B": 0.6, "BFLOAT8_B": 0.74, "BFLOAT16": 0.8}
#: Weights of so many tiles a block are read as fast as they can be; of fewer than ten, slowly.
_ENOUGH_TILES, _TOO_FEW_TILES = 12, 10
#: On fewer cores, these are what reading waits for.
_MANY_CORES: Final = 60


def wider_blocks(matmul: Product, board: Board) -> tuple[int, float] | None:
    """Return a better `in0_block_w` of a 1D matmul, and its time."""
    op, weights = matmul.op, matmul.weights
    wide, columns = inner_block(op), whole(op.attributes, "per_core_N")
    at = _INTERLEAVED_AT.get(weights.dtype) if weights else None
    if weights is None or at is None or not wide or not columns or matmul.line.stale:
        return None
    many = matmul.first is None or prod(matmul.first.padded[:-1]) > _FEW_ROWS
    if many or "1D" not in (program_config(op) or "") or "SHARDED" in weights.memory:
        return None
    if not board.is_blackhole or (op.cores or 0) < _MANY_CORES or wide * columns >= _TOO_FEW_TILES:
        return None
    inner = weights.padded[-2] // TILE_ROWS
    widths = range(wide + 1, min(inner, 4 * _WIDEST) + 1)
    width = next((w for w in widths if inner % w == 0 and w * columns >= _ENOUGH_TILES), None)
    reading = size_of(weights) / board.dram_gb_s / at
    least_ns = max(reading, (matmul.line.compute_ns or 0.0) * COMPUTE)
    return (width, least_ns) if width and least_ns * _ALIKE < op.kernel_ns else None


def inner_block(op: Op) -> int | None:
    """Tiles of the inner block of a matmul; None if unknown."""
    return whole(op.attributes, "in0_block_w", "K_block_size")


def output_subblock(op: Op) -> int | None:
    """Tiles of the output subblock of a matmul; None if unknown."""
    height = whole(op.attributes, "out_subblock_h", "subblock_h")
    width = whole(op.attributes, "out_subblock_w", "subblock_w")
    return None if height is None or width is None else height * width


#: Why rules about matrix products say nothing of a program without any.
NO_MATMULS: Final = "no matmuls"


def is_matmul(signature: Signature) -> bool:
    """Return whether an op is a matrix product, fused or not."""
    return signature.category is Category.MATMUL


def is_dense_matmul(signature: Signature) -> bool:
    """Return whether an op is a matrix product that skips no blocks."""
    return is_matmul(signature) and "sparse" not in signature.op.lower()


def is_routed(signature: Signature) -> bool:
    """Return whether a router decides how much an op has to do."""
    return _ROUTED.search(signature.op) is not None


_ROUTED: Final = re.compile(r"sparse_?matmul|moe|expert", re.IGNORECASE)


def program_config(op: Op) -> str | None:
    """Type of the program config; "" if unset, None if missing."""
    found = setting(op.attributes, "program_config")
    return setting(op.attributes, "config") if found is None else found


def is_convolution(signature: Signature) -> bool:
    """Return whether an op is a convolution itself."""
    return signature.category is Category.CONV


#: What of the bandwidth of DRAM ops reach at best, and matmuls with interleaved weights of a block
#: format: on Blackhole, real ones read 250 to 310 of 512 GB/s.
_REACHABLE: Final = 0.75
_REACHABLE_BLOCKS: Final = 0.6
#: Cores exchange what a norm sums up: sharded ones of real decode steps take 5.4 to 7.2 µs, and the
#: moves to shards and back another 2 to 3 µs.
_NORM_NS: Final = 7_000.0
_NORM_MOVES_NS: Final = 2_500.0
#: `rotary_embedding_hf` takes 1.4 to 1.9 µs on shards, where `rotary_embedding` takes 4 to 16 µs.
_ROTARY_NS: Final = 2_000.0
#: The widest heads that `rotary_embedding_llama` takes; it takes shards in decode steps alone.
_LLAMA_HEAD: Final = 256
_DECODES: Final = re.compile(r"NLPCreate\w*HeadsDecode|PagedUpdateCache", re.IGNORECASE)
#: What ops of so many tiles at most take on Blackhole, however many cores they have, and what
#: cutting a tensor of that size anew takes: medians of real captures.
_ELEMENTWISE_NS: Final = {128: 2_200.0, 512: 3_800.0, 2048: 14_000.0}
_RESHARD_NS: Final = {128: 1_400.0, 512: 1_800.0, 2048: 4_500.0}
#: What of its time an op must save: less is lost in what more cores exchange.
_WORTH_IT: Final = 0.25
#: Shorter conversions are for TTP203 and TTP302 alone.
_LONG_CONVERSION_NS: Final = 20_000.0
#: DRAM-sharded weights are the remedy unless more cores are faster by more than estimates differ.
_CLEARLY_FASTER: Final = 0.8
#: An op on less than this part of the cores that it could use is slow: as in tt-perf-report.
USED: Final = 0.5
#: Launching takes a good part of shorter ops.
_SHORTEST_NS: Final = 5_000.0
#: Ops that look for values along whole rows: what they give says nothing of what they read.
_SEARCHES: Final = re.compile(r"^(?:Reduce|ArgMax|TopK|Sampling|Sort|Cum\w*|Accumulation|Prod)$")
#: These work on a core per user, whatever the size of the tensors.
_PER_USER: Final = re.compile(r"cache|decode|fused_?update", re.IGNORECASE)
_SHARDED_L1: Final = re.compile(r"^L1_\w*SHARDED")
_HEADS: Final = re.compile(r"heads", re.IGNORECASE)
_LAYER_NORM: Final = re.compile(r"layer_?norm|rms_?norm", re.IGNORECASE)
NOT_TOLD: Final = "the capture does not say how many cores there are"


_SHARDS: Final = "cut the memory config into more shards"
_GRID: Final = (
    "matmuls: a program config with a larger `compute_with_storage_grid_size` and smaller "
    "`per_core_M` and `per_core_N`"
)


class Spread(NamedTuple):
    """Parts to cut an op into, and its shortest time.

    ``more_ns`` is what other ops take for that; ``on_shards_ns`` what it takes on shards, whatever
    their number.
    """

    parts: int
    remedy: str
    least_ns: float = LAUNCH_NS
    more_ns: float = 0.0
    on_shards_ns: float | None = None


class OnCores(NamedTuple):
    """An op with its cores in use and its possible cores.

    ``shards``: these cores are those that hold a shard, and not those that the profiler counts.
    ``interleaved``: not its cores make it slow, but that its input is not sharded.
    """

    row: int
    op: Op
    cores: int
    possible: int
    saved_ns: float
    remedy: str
    shards: bool = False
    interleaved: bool = False

    @property
    def part(self) -> float:
        """The cores in use as a fraction of the possible ones."""
        return self.cores / self.possible

    @property
    def cores_text(self) -> str:
        """On how many of which cores it works."""
        if self.interleaved:
            return f"on {counted(self.cores, 'core')}, not sharded"
        of = f"{self.cores} of {counted(self.possible, 'core')}"
        return f"on shards of {of}" if self.shards else f"on {of}"


def available_cores(step: OpTable, report: Report | None) -> int:
    """Count the cores of a device; 0 if unknown."""
    devices = report.devices if report is not None else ()
    told = max((device.compute_cores or 0 for device in devices), default=0)
    seen = max((cores or 0 for cores in step.columns.cores), default=0)
    return step.available_cores or told or seen


def few_cores(step: OpTable, report: Report | None) -> Mapping[int, OnCores]:
    """Return the ops, by row, that use too few of their cores.

    A matmul of a few rows gets there by DRAM-sharded weights as well: it is left out unless more
    cores are clearly faster.
    """
    available, board = available_cores(step, report), board_of(step)
    matmuls = () if board is None else matmuls_of(step)
    sharded = {each.row: best_form(each, board) for each in matmuls if board is not None}
    found: dict[int, OnCores] = {}
    for each in ops_on_cores(step, available):
        few = each.part < USED or each.interleaved
        worth = each.saved_ns >= each.op.kernel_ns * _WORTH_IT
        if not few or not worth or searches(each.op.signature):
            continue
        other = sharded.get(each.row)
        left_ns = each.op.kernel_ns - each.saved_ns
        if other is None or left_ns < _CLEARLY_FASTER * other.ns:
            found[each.row] = each
    return found


def ops_on_cores(step: OpTable, available: int) -> Iterator[OnCores]:
    """Yield the ops of the critical device that could be spread."""
    lines = rooflines(step)
    decodes = any(_DECODES.search(signature.op) for signature in step.signatures)
    for row, op in critical_ops(step):
        if op.kernel_ns < _SHORTEST_NS or lines[row].stale:
            continue
        cores = working_cores(op.signature, op.attributes, op.cores, 0)
        spread = _spread(op, decodes=decodes) if cores else None
        if not cores or spread is None:
            continue
        read_ns = (lines[row].dram_ns or 0.0) / _reachable(op)
        possible = max(cores, evenly(spread.parts, available))
        least = max(op.kernel_ns * cores / possible, spread.least_ns, read_ns) + spread.more_ns
        interleaved = spread.on_shards_ns is not None and possible == cores
        if interleaved:
            least = spread.on_shards_ns or 0.0
        saved = max(0.0, op.kernel_ns - least)
        shards = cores != op.cores
        yield OnCores(row, op, cores, possible, saved, spread.remedy, shards, interleaved)


def evenly(parts: int, available: int) -> int:
    """Count the cores that parts keep busy, shared out evenly.

    >>> evenly(180, 110), evenly(24, 110)
    (90, 24)
    """
    if available < 1 or parts < 1:
        return 0
    return -(-parts // -(-parts // available))


def _reachable(op: Op) -> float:
    inputs = op.signature.inputs
    blocks = is_dense_matmul(op.signature) and len(inputs) > 1 and inputs[1].dtype.endswith("_B")
    return _REACHABLE_BLOCKS if blocks else _REACHABLE


def searches(signature: Signature) -> bool:
    """Return whether an op searches or sums up along rows."""
    return _SEARCHES.search(signature.code) is not None


def _spread(op: Op, *, decodes: bool) -> Spread | None:
    """Return the ways to spread an op; None if unknown.

    Ops that only move data choose their cores themselves, collectives wait for links.
    """
    signature = op.signature
    if not signature.inputs or not signature.outputs or _PER_USER.search(signature.op):
        return None
    if searches(signature):
        return Spread(_tiles(signature.inputs[0]), _SHARDS)
    first, given = signature.inputs[0], signature.outputs[0]
    rows, tiles = max(_tile_rows(first), _tile_rows(given)), max(map(_tiles, signature.outputs))
    if signature.code == "RotaryEmbedding":
        return _spread_rotary(first, rows, decodes=decodes)
    found: Spread | None = None
    match signature.category:
        case Category.MATMUL:
            found = _spread_matmul(op)
        case Category.CONV:
            found = Spread(tiles, "convolutions: another `shard_layout`, or a larger core grid")
        case Category.ATTENTION if _HEADS.search(signature.code):
            # They are cut along the sequence alone, whatever the number of heads.
            found = Spread(min(_tile_rows(first), _tile_rows(given)), _SHARDS)
        case Category.ATTENTION:
            smaller = "attention: a smaller `q_chunk_size`"
            found = Spread(rows, f"{smaller}, or a larger `compute_with_storage_grid_size`")
        case Category.NORM:
            found = _spread_norm(op, tiles)
        case Category.LAYOUT if "ilize" in signature.op and op.kernel_ns >= _LONG_CONVERSION_NS:
            found = Spread(rows, "conversions: `use_multicore=True`")
        case Category.ELEMENTWISE:
            least_ns = _of_size(_ELEMENTWISE_NS, tiles)
            if _SHARDED_L1.search(first.memory) and _SHARDED_L1.search(given.memory):
                remedy = _FUSE if signature.code.startswith("Unary") else _NEIGHBOURS
                found = Spread(tiles, remedy, least_ns, 2 * _of_size(_RESHARD_NS, tiles))
            else:
                found = Spread(tiles, _SHARDS, least_ns)
    return found


def _of_size(times_ns: Mapping[int, float], tiles: int) -> float:
    return next((ns for most, ns in times_ns.items() if tiles <= most), max(times_ns.values()))


_FUSE: Final = (
    "activations on the shards of their neighbours: fuse them into the matmul "
    "(`fused_activation`) or the multiply beside them"
)
_NEIGHBOURS: Final = (
    "elementwise ops on the shards of their neighbours: give all of them more shards, as a "
    "reshard for one alone costs 1.4 to 4.5 µs each way"
)


def _spread_matmul(op: Op) -> Spread | None:
    """Return how a matmul is cut: into the tiles that it gives.

    Not one whose weights are cut to the banks of DRAM: these decide on its cores.
    """
    signature = op.signature
    given = signature.outputs[0]
    tiles, of_one = _tiles(given), _tiles(given._replace(padded=given.padded[-2:]))
    if "sparse" in signature.op.lower():
        return Spread(of_one, _GRID)
    second = signature.inputs[1] if len(signature.inputs) > 1 else None
    if is_dram_sharded(op.attributes) or (
        second is not None and second.memory.startswith("DRAM") and "SHARDED" in second.memory
    ):
        return None
    batched = second is not None and prod(second.padded[:-2]) > 1
    if batched and (op.cores or 0) <= of_one < tiles:
        one_by_one = "as they work on one of the batch after the other"
        config = "a batch-parallel config (`MatmulMultiCoreReuseProgramConfig`)"
        return Spread(tiles, f"batched matmuls: {config}, {one_by_one}")
    beside = 0.0 if batched or second is None else _BESIDE_NS
    rows = _tile_rows(given)
    if not batched and rows < grid_rows(op):
        config = "a 1D program config (`mcast_in0=True`)"
        remedy = f"matmuls of few rows: {config}, `per_core_N` = tiles of the width ÷ cores"
        return Spread(tiles // rows, remedy, more_ns=beside)
    return Spread(tiles, _GRID, more_ns=beside)


def grid_rows(op: Op) -> int:
    """Rows of cores of a 2D program config; 2 without a config.

    Each takes at least a row of tiles: with fewer of these the others are idle.
    """
    config = program_config(op)
    if config == "":
        return 2
    if not config or "1D" in config or "MultiCastProgramConfig" not in config:
        return 0
    return config_grid(op)[1]


def config_grid(op: Op) -> tuple[int, int]:
    """Columns and rows of cores of a program config; 0 if unknown."""
    grid = dict(settings_in(op.attributes)).get("compute_with_storage_grid_size", "")
    if not is_grid(grid):
        return 0, 0
    columns, _, rows = grid.partition("@")[0].partition("x")
    return int(columns), int(rows)


def _spread_rotary(first: Tensor, rows: int, *, decodes: bool) -> Spread:
    if first.padded[-1] > _LLAMA_HEAD:
        remedy = "RotaryEmbedding: `rotary_embedding_hf`, which takes heads of more than 256"
        return Spread(rows, remedy, _ROTARY_NS)
    remedy = "RotaryEmbedding: `rotary_embedding_hf` or `rotary_embedding_llama`"
    if not decodes:
        return Spread(rows, remedy, _ROTARY_NS)
    # On one row of tiles it has one core in any case: another op, on shards, is shorter.
    remedy += ", on inputs that are sharded by height"
    return Spread(rows, remedy, _ROTARY_NS, on_shards_ns=_ROTARY_NS if rows == 1 else None)


def _spread_norm(op: Op, tiles: int) -> Spread:
    first, code = op.signature.inputs[0], op.signature.code
    if "softmax" in code.lower():
        return Spread(_tile_rows(first), _SHARDS)
    if not _LAYER_NORM.search(code):
        grouped = "group" in code.lower()
        return Spread(tiles, "group norms: a larger `core_grid`" if grouped else _SHARDS)
    if _SHARDED_L1.search(first.memory):
        return Spread(tiles, _SHARDS, _NORM_NS)
    remedy = "norms: shard the input by width (several rows of tiles: by block)"
    return Spread(tiles, remedy, _NORM_NS, _NORM_MOVES_NS)


def _tiles(tensor: Tensor) -> int:
    *outer, rows, columns = (1, 1, *tensor.padded)
    return prod(outer) * -(-rows // TILE_ROWS) * -(-columns // TILE_ROWS)


def _tile_rows(tensor: Tensor) -> int:
    *outer, rows, _ = (1, 1, *tensor.padded)
    return max(1, prod(outer) * -(-rows // TILE_ROWS))
