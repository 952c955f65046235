"""Estimates of savings beside what was gained: ops of real captures before and after a change."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, rule_of
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops
from pytest_ttnn_perf.analysis.ops.names import op_name
from pytest_ttnn_perf.analysis.ops.regions import region_table, regions_of, step_of
from pytest_ttnn_perf.analysis.ops.roofline import board_of, is_dram_sharded, size_of
from pytest_ttnn_perf.records.finding import Subject
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.ops import Op, OpTable

SAVES: Final = "## What it saves"
#: Less is nothing: ops of one capture differ by that.
NOTHING_NS: Final = 2_000.0
#: The rule that has figures which were fitted to these captures.
_FITTED: Final = "TTP311"
INTRODUCTION: Final = """\
# Savings, estimated and gained

Generated from the code and the corpus by `TTNN_PERF_CORPUS=FOLDER make docs`.

Findings say what doing as they say would save of a step. Here stands what that comes to where
somebody did so: ops of real captures before a change, and the same ops after it, on the same chip.
The estimate is the rule's, from the ops before the change alone; the gain is the difference of the
median kernel times. An estimate is good if it is within a factor of two of the gain. Each op
stands alone: sums would hide that one is too high and another too low.

What to keep in mind:

- What TTP311 takes for the time of DRAM-sharded matmuls was fitted to the captures of this corpus,
  those of its own pairs among them. That they agree shows that the model can describe them, not how
  well it predicts others. The column *plain* has what nothing was fitted for: the time, less the
  bytes of the weights by 75 % of the peak bandwidth.
- TTP311 was judged with all that was changed at once: DRAM-sharded weights, inputs in L1, and often
  LoFi. Which of them gained how much cannot be separated.
- Pairs are of few models, and all but one on Blackhole. TTP101 compares two captures of one model.
- TTP314 and TTP607 promise half of the full speed. The one pair of each says that this is neither a
  bound nor sure: the matmul did not get there, the convolutions got beyond it, at a lower fidelity.

"""


class Side(NamedTuple):
    """Ops of a capture that are alike: matmuls of some rows with weights of some shape.

    ``weights`` are inner and outer dimension, padded. Others of their format, placement
    or fidelity are left out.
    """

    capture: str
    weights: tuple[int, int]
    rows: int = 32
    dtype: str = ""
    dram_sharded: bool | None = None
    fidelity: str = ""

    def chooses(self, op: Op) -> bool:
        """Tell whether an op is one of these."""
        inputs = op.signature.inputs
        return (
            category_of(op.signature.op) is Category.MATMUL
            and len(inputs) > 1
            and inputs[1].padded[-2:] == self.weights
            and inputs[0].padded[-2] == self.rows
            and self.dtype in inputs[1].dtype
            and self.fidelity in (op.fidelity or "")
            and self.dram_sharded in {None, is_dram_sharded(op.attributes)}
        )


class Pair(NamedTuple):
    """A change that a rule asks for, where it was made: each op before it, and after it.

    ``beside`` is the code of an op that runs after the change, and was part of the one before it.
    """

    code: str
    change: str
    ops: tuple[tuple[Side, Side], ...]
    beside: str = ""


class Verified(NamedTuple):
    """What a rule promised of one op, and what was gained, in nanoseconds.

    ``plain_ns`` is what no figure was fitted for; None where the rule has no such figures.
    """

    pair: Pair
    before: Side
    after: Side
    estimated_ns: float
    gained_ns: float
    plain_ns: float | None

    @property
    def is_good(self) -> bool:
        """Whether they are within a factor of two, or both are nothing: less than 2 µs."""
        if max(self.estimated_ns, self.gained_ns) < NOTHING_NS:
            return True
        return self.gained_ns > 0 and 0.5 <= self.estimated_ns / self.gained_ns <= 2


_V1, _FINAL = "gemma_sliding_decode_replicated_v1", "gemma_sliding_decode_final"
_FULL, _FUSED, _F4 = (
    "gemma_31b_full_decode_multichip",
    "gemma_31b_fused_final",
    "gemma_31b_fused_f4",
)
_FALCON, _LLAMA = "falcon3_7b_tp4", "llama_8b_multichip"
_B8, _B4 = "BFLOAT8_B", "BFLOAT4_B"


def _sharding(
    before: str, after: str, *shapes: tuple[int, int], dtype: str = _B8
) -> tuple[tuple[Side, Side], ...]:
    return tuple(
        (
            Side(before, shape, dtype=dtype, dram_sharded=False),
            Side(after, shape, dtype=dtype, dram_sharded=True),
        )
        for shape in shapes
    )


PAIRS: Final = (
    Pair(
        "TTP101",
        "weights from bfloat16 to bfloat8_b, both interleaved",
        tuple(
            (Side(_FUSED, shape), Side(_V1, shape, dtype=_B8, dram_sharded=False))
            for shape in ((5376, 16384), (8192, 5376))
        ),
    ),
    Pair(
        "TTP103",
        "HiFi4 to HiFi2, of a matmul that does not wait for computing",
        (
            (
                Side("rt_detr", (256, 256), 416, fidelity="HiFi4"),
                Side("rt_detr", (256, 256), 416, fidelity="HiFi2"),
            ),
        ),
    ),
    Pair(
        "TTP311",
        "two matmuls of a layer to DRAM-sharded weights, inputs in L1 and LoFi",
        _sharding(_V1, _FINAL, (5376, 4096), (2048, 5376)),
    ),
    Pair(
        "TTP311",
        "the same in another kind of layer",
        _sharding(_FULL, _FULL, (5376, 5120), (4096, 5376)),
    ),
    Pair(
        "TTP311",
        "the same with whole weights on each device",
        _sharding(_V1, _V1, (5376, 16384), (8192, 5376), (5376, 20480), (16384, 5376)),
    ),
    Pair(
        "TTP311",
        "bfloat4_b at HiFi2 to DRAM-sharded weights and LoFi",
        _sharding(_V1, _V1, (5376, 21504), (21504, 5376), dtype=_B4),
    ),
    Pair(
        "TTP311",
        "bfloat4_b at LoFi to DRAM-sharded weights",
        _sharding(_FINAL, _FINAL, (5376, 5376), dtype=_B4),
    ),
    Pair(
        "TTP311",
        "bfloat4_b on 10 and 11 cores to DRAM-sharded weights",
        (
            (Side(_FALCON, (3072, 5760), dram_sharded=False), Side(_FALCON, (3072, 6144))),
            (Side(_FALCON, (5760, 3072), dram_sharded=False), Side(_FALCON, (6144, 3072))),
            *_sharding(_FALCON, _FALCON, (3072, 1280), (768, 3072), dtype=_B4),
        ),
    ),
    Pair(
        "TTP314",
        "a 1D program config with a fused GELU to a 2D one, for 4096 rows",
        (
            (
                Side(_F4, (5376, 21504), 4096, fidelity="LoFi"),
                Side(_F4, (5376, 21504), 4096, fidelity="HiFi2"),
            ),
        ),
        beside="Unary",
    ),
)


def verified(folder: Path) -> Iterator[Verified]:
    """Yield the ops of all pairs."""
    tables: dict[str, OpTable] = {}
    for pair in PAIRS:
        for before, after in pair.ops:
            for name in (before.capture, after.capture):
                if name not in tables:
                    tables[name] = read_ops_csv(folder / f"{name}.csv")
            yield _verify(pair, before, after, tables)


def _verify(pair: Pair, before: Side, after: Side, tables: Mapping[str, OpTable]) -> Verified:
    rule = rule_of(pair.code).with_limits(share=-1.0)
    old, new = tables[before.capture], tables[after.capture]
    slow = _typical(old, before.chooses)
    gained = old.columns.kernel_ns[slow] - new.columns.kernel_ns[_typical(new, after.chooses)]
    if pair.beside:
        extra = _typical(new, lambda op: op.signature.op.startswith(pair.beside))
        gained -= new.columns.kernel_ns[extra]
    answer = rule.check(Subject(ops=old.select([slow])))
    plain = _plain_ns(old, slow) if pair.code == _FITTED else None
    return Verified(pair, before, after, sum(answer.savings.values()), gained, plain)


def _plain_ns(table: OpTable, row: int) -> float:
    op, board = table.op(row), board_of(table)
    assert board is not None
    reading = size_of(op.signature.inputs[1]) / (0.75 * board.dram_gb_s)
    return max(0.0, op.kernel_ns - reading)


def _typical(table: OpTable, chosen: Callable[[Op], bool]) -> int:
    """Return the row of the op with the median time."""
    rows = [row for row, op in enumerate(table) if not op.host and chosen(op)]
    times = table.columns.kernel_ns
    middle = median(times[row] for row in rows)
    return min(rows, key=lambda row: abs(times[row] - middle))


class Ops(NamedTuple):
    """Ops of one step of a region, on its slowest device, whose names match a pattern."""

    capture: str
    region: str
    pattern: str


class Change(NamedTuple):
    """A change of a part of a step that a rule asks for, before it and after it.

    What ``each`` op takes is compared, or else all of them together.
    """

    code: str
    change: str
    before: Ops
    after: Ops
    each: bool = False


_OFT, _LATER_OFT = "oft_2025_09_v2", "blackhole_oft_conv"
_FALCON_FULL, _SLIDING = "falcon3_full", "mc_sliding_attention_decode"
_MOVES = "InterleavedToSharded|ShardedToInterleaved|Reshard|Copy|Move|Pad"
_REARRANGE = "Reshape|Permute|Transpose|Slice |Concat|Move|Pad|Repeat"
CHANGES: Final = (
    Change(
        "TTP305",
        "shards of a multiply from 8 to 24 cores",
        Ops(_V1, _SLIDING, "BinaryNg MUL 1x1x1x5376"),
        Ops(_FINAL, _SLIDING, "BinaryNg MUL 1x1x1x5376"),
    ),
    Change(
        "TTP305",
        "a norm of one row of tiles, from 1 core to shards on 32",
        Ops(_LLAMA, "multi_prefill", "LayerNorm 1x1x18x4096"),
        Ops(_LLAMA, "multi_decode", "LayerNorm 1x1x1x4096"),
        each=True,
    ),
    Change(
        "TTP305",
        "a norm of one row of tiles, from 1 core to shards on 32",
        Ops(_FALCON, "multichip_prefill", "LayerNorm 1x1x17x3072"),
        Ops(_FALCON, "multichip_decode", "LayerNorm 1x1x"),
        each=True,
    ),
    Change(
        "TTP703",
        "pairs of reduce-scatter and all-gather to all-reduces of bfloat8_b",
        Ops(_FALCON, "multichip_decode", "ReduceScatter|AllGather"),
        Ops(_FALCON_FULL, "decode", "AllReduce"),
    ),
    Change(
        "TTP307",
        "features sampled in parts instead of reshaped and permuted as a whole",
        Ops(_OFT, "oft_module", _REARRANGE),
        Ops(_LATER_OFT, "oft_module", _REARRANGE),
    ),
    Change(
        "TTP307",
        "images no longer reshaped around convolutions",
        Ops(_OFT, "topdown", _REARRANGE),
        Ops(_LATER_OFT, "topdown", _REARRANGE),
    ),
    Change(
        "TTP203",
        "features kept in one layout",
        Ops(_OFT, "oft_module", "[Tt]ilize"),
        Ops(_LATER_OFT, "oft_module", "[Tt]ilize"),
    ),
    Change(
        "TTP302",
        "images sent as the first convolution takes them",
        Ops(_OFT, "resnet_module", _MOVES),
        Ops(_LATER_OFT, "resnet_module", _MOVES),
    ),
    Change(
        "TTP305",
        "a group norm in two halves, on 20 cores instead of 8",
        Ops(_OFT, "resnet_module", "GroupNorm"),
        Ops(_LATER_OFT, "resnet_module", "GroupNorm"),
    ),
    Change(
        "TTP203",
        "convolutions that take and give one layout",
        Ops(_OFT, "resnet_module", "Tilize|Untilize"),
        Ops(_LATER_OFT, "resnet_module", "Tilize|Untilize"),
    ),
    Change(
        "TTP607",
        "convolutions sharded by height, in larger blocks and at HiFi2",
        Ops(_OFT, "topdown", "OptimizedConvNew"),
        Ops(_LATER_OFT, "topdown", "Conv2d"),
    ),
)


class Made(NamedTuple):
    """What a rule promised of a part of a step, and what was gained, in nanoseconds."""

    change: Change
    estimated_ns: float
    gained_ns: float

    @property
    def is_good(self) -> bool:
        """Whether they are within a factor of two."""
        return self.gained_ns > 0 and 0.5 <= self.estimated_ns / self.gained_ns <= 2


def changes_made(folder: Path) -> Iterator[Made]:
    """Yield the changes of all parts of steps."""
    for change in CHANGES:
        sides = (change.before, change.after)
        old, new = (_region(folder / f"{side.capture}.csv", side.region) for side in sides)
        rule = rule_of(change.code).with_limits(share=-1.0)
        savings = rule.check(Subject(ops=old)).savings
        before, after = (_times(*of) for of in ((old, change.before), (new, change.after)))
        estimated = sum(savings.get(row, 0.0) for row in before)
        if change.each:
            gained = _mean(before.values()) - _mean(after.values())
            yield Made(change, estimated / len(before), gained)
        else:
            yield Made(change, estimated, sum(before.values()) - sum(after.values()))


def _mean(times: Collection[float]) -> float:
    return sum(times) / len(times)


def _region(file: Path, name: str) -> OpTable:
    table = read_ops_csv(file)
    (found,) = (each for each in regions_of(table).regions if each.name == name)
    return region_table(table, found)


def _times(region: OpTable, ops: Ops) -> dict[int, float]:
    """Return the times of these ops by their row in a step."""
    chosen = re.compile(f"^(?:{ops.pattern})")
    return {
        row: op.kernel_ns
        for row, op in critical_ops(step_of(region))
        if chosen.search(op_name(op.signature, op.attributes))
    }


PARTS: Final = """\
## Parts of a step

The same for what is no single matmul: ops of one step, before and after. That TTP203 and TTP307
agree says that what they name could go, and no more: they promise its time. The later OFT samples
features in another way, and the older capture does not name its chip; norms of the same shape take
as long in both. Some figures come from these captures, and so agree with them: that norms take 7 µs
at least (TTP305), that collectives take 10 µs however little they exchange (TTP703), and what norms
save in tiles (TTP201, which therefore stands in no table). Parts that were changed as no finding
says, such as the layout conversions of `topdown`, of which there are more now, stand in no row.

| rule | change | captures | gained | estimated | ÷ gain |
|---|---|---|---:|---:|---:|
"""


def _part(made: Made) -> str:
    change = made.change
    captures = dict.fromkeys((change.before.capture, change.after.capture))
    cells = (
        f"[{change.code}]({change.code}.md)",
        change.change,
        " → ".join(f"`{name}`" for name in captures),
        _us(made.gained_ns),
        _us(made.estimated_ns),
        _ratio(made.estimated_ns, made.gained_ns),
    )
    return f"| {' | '.join(cells)} |"


def page(folder: Path) -> str:
    """Return the tables, and the rules that they say nothing of."""
    found = list(verified(folder))
    made = list(changes_made(folder))
    head = "| rule | change | weights | captures | gained | estimated | ÷ gain | plain | ÷ gain |\n"
    head += "|---|---|---|---|---:|---:|---:|---:|---:|\n"
    rows = "\n".join(map(_row, found))
    parts = PARTS + "\n".join(map(_part, made))
    good = f"{sum(one.is_good for one in made)} of {len(made)} are within a factor of two."
    known = {one.pair.code for one in found} | {one.change.code for one in made}
    return (
        f"{INTRODUCTION}{head}{rows}\n\n{_off(found)}\n\n{parts}\n\n{good}\n\n{_without(known)}\n"
    )


def _row(one: Verified) -> str:
    code, shape = one.pair.code, one.before.weights
    captures = dict.fromkeys((one.before.capture, one.after.capture))
    cells = (
        f"[{code}]({code}.md)",
        one.pair.change,
        f"{shape[0]}x{shape[1]}",
        " → ".join(f"`{name}`" for name in captures),
        _us(one.gained_ns),
        _us(one.estimated_ns),
        _ratio(one.estimated_ns, one.gained_ns),
        "" if one.plain_ns is None else _us(one.plain_ns),
        "" if one.plain_ns is None else _ratio(one.plain_ns, one.gained_ns),
    )
    return f"| {' | '.join(cells)} |"


def _us(ns: float) -> str:
    return f"{ns / 1000:,.1f} µs"


def _ratio(ns: float, gained_ns: float) -> str:
    return f"{ns / gained_ns:.2f}" if gained_ns >= NOTHING_NS else "–"


def _off(found: Sequence[Verified]) -> str:
    off = [one for one in found if not one.is_good]
    good = f"{len(found) - len(off)} of {len(found)} are within a factor of two."
    told = "; ".join(
        f"{one.pair.code}, {one.pair.change}, {one.before.weights[0]}x{one.before.weights[1]}"
        for one in off
    )
    return f"{good} Not so: {told}." if off else good


def _without(known: Collection[str]) -> str:
    others = [rule.code for rule in all_rules() if SAVES in rule.page and rule.code not in known]
    named = ", ".join(f"[{code}]({code}.md)" for code in others)
    return (
        f"No pair in the corpus shows what these would save: {named}. Of TTP103, the only pair is "
        "one of which it promises nothing."
    )
