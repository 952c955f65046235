"""What kind of work an operation does, told by its code."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Category(Enum):
    """Kinds of work. ``OTHER`` is what no pattern knows, and is said so."""

    MATMUL = "matmul"
    CONV = "conv"
    ATTENTION = "attention"
    ELEMENTWISE = "elementwise"
    NORM = "norm and reduce"
    COLLECTIVE = "collective"
    LAYOUT = "layout"
    MOVEMENT = "movement"
    HOST = "host"
    OTHER = "other"


#: Looked for in this order, so that a name which holds two words counts by its work: a fused
#: matmul and gather is a matmul, a reduce-scatter no reduce, and a padded slice no pad.
_PATTERNS: Final[Mapping[Category, str]] = {
    Category.HOST: r"^\(torch\)",
    Category.CONV: r"conv\d|conv_|ConvNew|^Conv$|DepthwiseConv",
    Category.MATMUL: r"matmul|linear|^Moreh.*Dot|^bmm",
    Category.COLLECTIVE: r"all_?gather|all_?reduce|reduce_?scatter|all_?to_?all|all_?broadcast|"
    r"send|recv|point_?to_?point|barrier|mesh_?partition",
    Category.LAYOUT: r"tilize|to_?layout|typecast",
    Category.ATTENTION: r"sdpa|attention|rotary|kv_?cache|update_?cache|fill_?cache|fused_?update|"
    r"qkv|heads",
    Category.NORM: r"norm|softmax|reduce|accumulation|top_?k|arg_?max|sum|mean|pool|int_?img|"
    r"sampling",
    Category.MOVEMENT: r"reshard|interleaved_?to|sharded_?to|move|copy|reshape|view|slice|concat|"
    r"permute|transpose|pad|split|repeat|halo|fold|clone|assign|scatter|gather|stack|upsample|"
    r"grid_?sample|embedding|non_?zero|fill|full|bcast",
    Category.ELEMENTWISE: r"binary|unary|ternary|eltwise|where|activation|gelu|relu|silu",
}
_COMPILED: Final = tuple((kind, re.compile(p, re.IGNORECASE)) for kind, p in _PATTERNS.items())


@lru_cache(maxsize=4096)
def category_of(op: str) -> Category:
    """Return the category of an op's code.

    >>> category_of("MatmulDeviceOperation"), category_of("ReduceScatterDeviceOperation")
    (<Category.MATMUL: 'matmul'>, <Category.COLLECTIVE: 'collective'>)
    """
    for kind, pattern in _COMPILED:
        if pattern.search(op):
            return kind
    return Category.OTHER
