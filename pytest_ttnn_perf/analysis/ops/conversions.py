"""Ops that move or convert a tensor: from what to what, and between which other ops."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.settings import (
    SHARD_GRID,
    SHARD_SHAPE,
    cores_of,
    is_grid,
    settings_in,
)
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.records.ops import Signature, Tensor


#: Ops that give the same numbers in another place, order or format.
_CONVERSION: Final = re.compile(
    r"Reshard|InterleavedToSharded|ShardedToInterleaved|Tilize|Untilize|Typecast|^Copy|^Clone|^Move"
    r"|ToMemoryConfig|ToLayout|ToDtype"
)
#: How memory that is not cut into shards is called: by its kind alone.
_PLAIN: Final = "_INTERLEAVED"
#: How many ops away a producer or a consumer is looked for: about a layer.
_NEAR: Final = 64


@lru_cache(maxsize=1024)
def is_conversion(op: str) -> bool:
    """Tell whether an op only moves or converts its input."""
    return _CONVERSION.search(short_code(op)) is not None


def conversion_text(signature: Signature, attributes: str = "") -> str:
    """Return from what to what an op converts, where the capture tells.

    >>> from pytest_ttnn_perf.records.ops import Signature, Tensor
    >>> dram = Tensor((32, 64), None, "TILE", "BFLOAT16", "DRAM_INTERLEAVED")
    >>> conversion_text(Signature("Reshard", (dram,), (dram._replace(memory="L1_WIDTH_SHARDED"),)))
    'DRAM → L1_WIDTH_SHARDED'
    """
    if not signature.inputs or not signature.outputs:
        return ""
    given, made = signature.inputs[0], signature.outputs[0]
    pairs = (
        (given.dtype, made.dtype),
        (given.layout, made.layout),
        (given.memory.removesuffix(_PLAIN), made.memory.removesuffix(_PLAIN)),
    )
    steps = [f"{then} → {now}" for then, now in pairs if then and now and then != now]
    if not steps and "SHARDED" in made.memory:
        steps = [f"{made.memory} → {shards}"] if (shards := shards_text(attributes)) else []
    return ", ".join(steps)


def shards_text(attributes: str) -> str:
    """Return how the output of an op is cut: "24 cores of 32x224"; "" where that is not told."""
    settings = dict(settings_in(attributes))
    grid, shape = settings.get(SHARD_GRID, ""), settings.get(SHARD_SHAPE, "")
    cores = f"{cores_of(grid)} cores" if is_grid(grid) else ""
    return " of ".join(filter(None, [cores, shape]))


def neighbours(
    at: int, length: int, signature_at: Callable[[int], Signature]
) -> tuple[int | None, int | None]:
    """Return the places of the ops that made what a conversion takes, and that take what it makes.

    A capture does not tell tensors apart: it is the nearest op before whose output, and the nearest
    one after whose input, is as large and in the same format and place. None where there is none.
    """
    own = signature_at(at)
    before = range(at - 1, max(-1, at - 1 - _NEAR), -1)
    after = range(at + 1, min(length, at + 1 + _NEAR))
    return (
        _nearest(before, own.inputs[:1], lambda place: signature_at(place).outputs),
        _nearest(after, own.outputs[:1], lambda place: signature_at(place).inputs),
    )


def producers(at: int, signature_at: Callable[[int], Signature]) -> list[int]:
    """Return the places of the ops that made what an op takes, by what these tensors look like."""
    before = range(at - 1, max(-1, at - 1 - _NEAR), -1)
    found = (
        _nearest(before, (tensor,), lambda place: signature_at(place).outputs)
        for tensor in signature_at(at).inputs
    )
    return [place for place in found if place is not None]


def without_producer(signatures: Sequence[Signature]) -> list[bool]:
    """Tell of each op of a step whether no op before it made what it takes first.

    That is what comes from the host, or was there before the step: inputs, weights, tables. Where a
    capture does not tell what ops give, it is not known, and not said of any.
    """
    made: set[tuple[int, str, str, str]] = set()
    found = []
    for at, signature in enumerate(signatures):
        first = signature.inputs[:1]
        found.append(bool(first) and bool(made or at == 0) and _format(first[0]) not in made)
        made.update(map(_format, signature.outputs))
    return found


def between_text(pairs: Mapping[tuple[str | None, ...], int]) -> str:
    """Say between which producer and consumer conversions stand: the usual, of several.

    >>> between_text({("Matmul", "Softmax"): 2}), between_text({(None, "Softmax"): 1})
    ('between Matmul and Softmax', 'before Softmax')
    >>> between_text({("Matmul", None): 2, ("Slice", "Softmax"): 1}), between_text({})
    ('after Matmul, and 1 elsewhere', '')
    """
    told = {pair: count for pair, count in pairs.items() if any(pair)}
    if not told:
        return ""
    usual = max(told, key=lambda pair: told[pair])
    producer, consumer = usual
    text = f"after {producer}" if producer else f"before {consumer}"
    if producer and consumer:
        text = f"between {producer} and {consumer}"
    others = sum(pairs.values()) - told[usual]
    return f"{text}, and {others} elsewhere" if others else text


def _nearest(
    places: Iterable[int], wanted: tuple[Tensor, ...], of: Callable[[int], tuple[Tensor, ...]]
) -> int | None:
    if not wanted:
        return None
    sought = _format(wanted[0])
    return next((place for place in places if sought in map(_format, of(place))), None)


def _format(tensor: Tensor) -> tuple[int, str, str, str]:
    # A view has another shape, and takes no op.
    return prod(tensor.padded), tensor.dtype, tensor.layout, tensor.memory
