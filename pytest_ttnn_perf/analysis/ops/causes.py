"""Why an op takes another time than its counterpart: what is set up otherwise, costly first."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.names import shape_text
from pytest_ttnn_perf.analysis.ops.settings import (
    BLOCKS,
    PROGRAM,
    SHARD_GRID,
    SHARD_ORDER,
    SHARD_SHAPE,
    cores_of,
    is_grid,
    settings_in,
)
from pytest_ttnn_perf.records.attribution import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.ops.catalogue import Variant
    from pytest_ttnn_perf.records.ops import Tensor

    Difference = tuple[str, str | None, str | None]


#: What usually costs most stands first: another amount of work, then where it runs and where its
#: operands lie, then their formats, then how it is cut. Of equals the order of telling stays.
_RANKS: Final = {
    what: rank
    for rank, whats in enumerate([
        ("shape", "inputs", "outputs", "input_tensor_shape", "activation"),
        ("cores", "shard cores", "shard shape", "shard grid"),
        ("memory",),
        ("dtype", "layout"),
        ("fidelity",),
        (PROGRAM,),
        BLOCKS,
    ])
    for what in whats
}  # fmt: skip
_LAST: Final = max(_RANKS.values()) + 1
#: The readers of weights that lie in all banks of the DRAM: their number is that of the banks, and
#: what a capture counts as cores says nothing of it.
_FROM_BANKS: Final = "DRAMSharded"


def causes_between(before: Variant, after: Variant) -> tuple[Cause, ...]:
    """Return the differences, what usually costs most first.

    What one side does not tell is no difference: older captures, and baselines that were written by
    an older version, tell less.
    """
    found = [
        Cause(what, then, now)
        for what, then, now in _both(before, after)
        if then and now and now != then
    ]
    if len(found) > 1:
        banks = any(_FROM_BANKS in each.attributes for each in (before, after))
        found.sort(key=lambda cause: _rank(cause.what, banks=banks))
    return tuple(found)


def _rank(what: str, *, banks: bool) -> int:
    if banks and what == "cores":
        return _LAST
    return _RANKS.get(what.rpartition(" ")[2] if what[:2] in {"in", "ou"} else what, _LAST)


def _both(before: Variant, after: Variant) -> Iterator[Difference]:
    """Yield what may differ: its name, and its value before and after."""
    yield "cores", str(before.cores or ""), str(after.cores or "")
    yield "fidelity", before.fidelity, after.fidelity
    if before.signature != after.signature:
        ours, theirs = before.signature, after.signature
        yield from _operands("in", ours.inputs, theirs.inputs)
        yield from _operands("out", ours.outputs, theirs.outputs)
    if before.attributes != after.attributes:
        yield from _settings(
            dict(settings_in(before.attributes)), dict(settings_in(after.attributes))
        )


def _settings(then: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    yield from _shards(then, now)
    for key, value in then.items():
        if key not in {SHARD_GRID, SHARD_SHAPE, SHARD_ORDER}:
            yield key, value, now.get(key)


def _shards(then: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    """Yield in what the shards of the output differ; grids of as many cores only if they do."""
    grids = then.get(SHARD_GRID, ""), now.get(SHARD_GRID, "")
    if all(map(is_grid, grids)):
        before, after = map(cores_of, grids)
        yield "shard cores", str(before), str(after)
        if before == after:
            yield "shard grid", *grids
    yield "shard shape", then.get(SHARD_SHAPE), now.get(SHARD_SHAPE)
    yield "shard orientation", then.get(SHARD_ORDER), now.get(SHARD_ORDER)


def _operands(
    side: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> Iterator[Difference]:
    """Yield in what operands differ, the largest first: it takes longest to read or to write."""
    if len(before) != len(after):
        yield f"{side}puts", str(len(before)), str(len(after))
    pairs = list(enumerate(zip(before, after, strict=False)))
    pairs.sort(key=lambda pair: -max(prod(tensor.padded) for tensor in pair[1]))
    for place, (then, now) in pairs:
        if then != now:
            name = f"{side}{place}"
            yield f"{name} dtype", then.dtype, now.dtype
            yield f"{name} memory", then.memory, now.memory
            yield f"{name} layout", then.layout, now.layout
            yield f"{name} shape", *_shapes(then, now)


def _shapes(before: Tensor, after: Tensor) -> tuple[str, str]:
    """Return logical shapes where both sides tell them; padding follows from the layout."""
    if before.logical is None or after.logical is None:
        return shape_text(before.padded), shape_text(after.padded)
    return shape_text(before.logical), shape_text(after.logical)
