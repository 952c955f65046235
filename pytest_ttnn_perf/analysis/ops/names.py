"""Names of ops, their settings, and rows of a listing of ops."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.regions import (
    complete_steps,
    critical_rows,
    find_layers,
    middle_steps,
    regions_of,
)
from pytest_ttnn_perf.analysis.ops.roofline import (
    board_of,
    is_dram_sharded,
    readers_per_bank,
    rooflines,
)
from pytest_ttnn_perf.core.ops import Category, Utilisation, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import Layers, Region
    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor


# Ops as people call them, the same wherever one is named.

#: Codes of ops that are many: which, stands in their attributes.
ELEMENTWISE: Final = ("Unary", "Binary", "Ternary")
#: Other ops with a setting for their function.
_COMPUTES: Final = {"Reduce": "math_op", "Pool2D": "pool_type"}


@lru_cache(maxsize=4096)
def op_name(signature: Signature, attributes: str = "") -> str:
    """Return the name of an op with its shape or conversion.

    >>> from pytest_ttnn_perf.core.ops import Signature
    >>> op_name(Signature("BinaryNgDeviceOperation"), "binary_op_type=BinaryOpType::MUL")
    'BinaryNg MUL'
    """
    words = [op_and_function(signature.op, attributes), calling_shape(signature, attributes)]
    if is_conversion(signature.op):
        words.append(conversion_text(signature, attributes))
    return " ".join(filter(None, words))


def op_and_function(op: str, attributes: str) -> str:
    code = short_code(op)
    if code.startswith(ELEMENTWISE):
        return f"{code} {function_in(attributes)}".strip()
    if code in _COMPUTES:
        return f"{code} {dict(settings_in(attributes)).get(_COMPUTES[code], '')}".strip()
    return code


@lru_cache(maxsize=1024)
def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape.

    >>> shape_text((1, 1, 32, 4096))
    '1x1x32x4096'
    """
    return "x".join(map(str, shape))


def calling_shape(signature: Signature, attributes: str = "") -> str:
    """Return the shape to call an op by: its first input.

    For a matrix product that is not enough: all projections of a layer take the same. What a
    convolution or a pooling takes is flattened; its attributes have the image.
    """
    operands = signature.inputs or signature.outputs
    if not operands:
        return ""
    first = _shape(operands[0])
    image = "_hw" in attributes or "input_tensor_shape" in attributes
    if image and (shape := _image_shape(dict(settings_in(attributes)), first)):
        return shape
    if "Matmul" in signature.op and len(operands) > 1:
        second = _shape(operands[1])[-2:]
        turned = flag(attributes, "transpose_b")  # as it multiplies, not as it lies
        return f"{shape_text(first)} @ {shape_text(second[::-1] if turned else second)}"
    return shape_text(first)


@lru_cache(maxsize=1024)
def operands_text(signature: Signature) -> str:
    """Return all operands in one line, ``32[1]`` for 1 padded to 32."""
    sides = (signature.inputs, signature.outputs)
    return " -> ".join(", ".join(map(_tensor, side)) for side in sides if side)


def _image_shape(settings: dict[str, str], flat: tuple[int, ...]) -> str:
    if "input_tensor_shape" in settings:
        return settings["input_tensor_shape"]
    size, batch = settings.get("input_hw"), settings.get("batch_size", "1")
    return f"{batch}x{size}x{flat[-1]}" if size and flat else ""


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _tensor(tensor: Tensor) -> str:
    logical = _shape(tensor)
    shape = shape_text(logical)
    if logical != tensor.padded:
        both = zip(tensor.padded, logical, strict=False)
        shape = "x".join(f"{n}" if n == m else f"{n}[{m}]" for n, m in both)
    return " ".join(filter(None, [shape, tensor.dtype, tensor.layout, tensor.memory]))


# Ops that move or convert a tensor: from what to what, and between which other ops.

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
    return _CONVERSION.search(short_code(op)) is not None


def conversion_text(signature: Signature, attributes: str = "") -> str:
    """Return source and target of a conversion, if known.

    >>> from pytest_ttnn_perf.core.ops import Signature, Tensor
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
    """Return the shards of the output: "24 cores of 32x224"."""
    settings = dict(settings_in(attributes))
    grid, shape = settings.get(SHARD_GRID, ""), settings.get(SHARD_SHAPE, "")
    cores = f"{cores_of(grid)} cores" if is_grid(grid) else ""
    return " of ".join(filter(None, [cores, shape]))


def neighbours(
    at: int, length: int, signature_at: Callable[[int], Signature]
) -> tuple[int | None, int | None]:
    """Return the places of a conversion's producer and consumer.

    A capture has no ids of tensors: it is the nearest op before whose output, and the nearest
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
    """Return the places of the ops that produced an op's inputs."""
    before = range(at - 1, max(-1, at - 1 - _NEAR), -1)
    found = (
        _nearest(before, (tensor,), lambda place: signature_at(place).outputs)
        for tensor in signature_at(at).inputs
    )
    return [place for place in found if place is not None]


def without_producer(signatures: Sequence[Signature]) -> list[bool]:
    """Return for each op whether nothing produced its first input.

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
    known = {pair: count for pair, count in pairs.items() if any(pair)}
    if not known:
        return ""
    usual = max(known, key=lambda pair: known[pair])
    producer, consumer = usual
    text = f"after {producer}" if producer else f"before {consumer}"
    if producer and consumer:
        text = f"between {producer} and {consumer}"
    others = sum(pairs.values()) - known[usual]
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


# The attributes of an op: its settings and its function.
#
# TTNN prints them in spellings of its own, which changed from 2024 to 2026 and do not always close
# their brackets: they are read key by key.

#: The kernel or the way of working that an op was given.
PROGRAM: Final = "program_config"
#: How its output is cut into shards: which cores hold them, how large each is, and their order.
SHARD_GRID: Final = "shards_grid"
SHARD_SHAPE: Final = "shards_shape"
SHARD_ORDER: Final = "shards_orientation"
#: The sizes in which an op works, and the cores it may use.
BLOCKS: Final = (
    "in0_block_w", "out_subblock_h", "out_subblock_w", "out_block_h", "out_block_w",
    "per_core_M", "per_core_N", "compute_with_storage_grid_size",
    "M_block_size", "K_block_size", "N_block_size", "subblock_h", "subblock_w",
    "act_block_h_ntiles", "act_block_w_ntiles", "out_subblock_h_ntiles", "out_subblock_w_ntiles",
    "grid_size", "num_cores_nhw", "num_cores_c", "num_cores_c_in", "num_cores_c_out",
    "per_core_out_matrix_height_ntile", "per_core_out_matrix_width_ntile",
    "block_h", "block_w", "num_out_blocks",
    "q_chunk_size", "k_chunk_size", "max_cores_per_head_batch",
)  # fmt: skip
#: Other settings that decide how fast an op is: of collectives, attention, elementwise ops and
#: moves, and what a convolution or a pooling is given before it is flattened.
_MORE: Final = (
    "num_links", "num_workers_per_link", "num_buffers_per_channel", "chunks_per_sync", "topology",
    "ring_size", "user_core_coord", "sub_core_grids", "worker_grid", "global_cb",
    "num_global_cb_receivers", "throttle_level", "sliding_window_size", "num_slices",
    "compute_kernel_config", "subtile_broadcast_type", "move_op_parallelization_strategy",
    "math_op", "pool_type",
    "input_tensor_shape", "batch_size", "input_hw", "window_hw", "stride_hw", "dilation_hw",
)  # fmt: skip
#: Settings that are on or off, printed as 1 and 0 or as true and false.
_SWITCHES: Final = (
    "enable_act_double_buffer", "enable_weights_double_buffer", "enable_split_reader",
    "force_split_reader", "enable_activation_reuse", "full_inner_dim", "config_tensors_in_dram",
    "mcast_in0", "gather_in0", "fuse_batch", "transpose_mcast",
    "math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc", "dst_full_sync_en",
    "exp_approx_mode", "use_multicore", "use_welford", "inplace",
    "bcast_batch", "user_run_batched", "transpose_a", "transpose_b", "untilize_out",
    "is_causal", "paged_attention", "is_sfpu", "numeric_stable", "legacy_reduction", "legacy_rsqrt",
    "use_pack_untilize", "use_low_perf", "bfp8_pack_precise", "preserve_fp32_precision",
    "using_persistent_buffers", "use_noc1_only", "use_optimal_ccl_for_llama",
)  # fmt: skip
#: All settings, in the order of printing.
ORDER: Final = {
    key: place
    for place, key in enumerate(
        ("activation", SHARD_GRID, SHARD_SHAPE, SHARD_ORDER, PROGRAM, *BLOCKS, *_MORE, *_SWITCHES)
    )
}
#: 'key': 'value' or key=value; a value ends where its own arguments begin.
_SETTING: Final = re.compile(r"\b(\w+)\b'?\s*[=:]\s*'?(\(x=\d+;\s*y=\d+\)|[^\s;'(){}\[\]]+)")
#: The functions that an elementwise op applies, or that are fused into another op.
_FUNCTION: Final = re.compile(r"\bop_type\s*=\s*UnaryOpType::(\w+)")
#: What an elementwise op of several inputs computes.
_OPERATOR: Final = re.compile(r"\b(?:binary|ternary)_op_type'?\s*[=:]\s*'?\w+::(\w+)")
_POINT: Final = re.compile(r"\(x=(\d+);\s*y=(\d+)\)|(\d+)-(\d+)")
_SPELLINGS: Final = {"1": "on", "true": "on", "0": "off", "false": "off"}
#: The corners of ranges of cores, whatever stands between the numbers.
_RANGES: Final = r"([\[{][\[\]{}();:,\"=\-\s\dxystarend]*)"
_CORES: Final = re.compile(r"\b(worker_grid|sub_core_grid)s?'?\s*[=:]\s*'?" + _RANGES)
#: Where the output goes; what goes elsewhere, such as an intermediate, has a longer name.
_OUTPUT: Final = re.compile(
    r"\b(?:m_)?(?:output_)?mem(?:ory)?_config_?'?\s*[=:]\s*'?MemoryConfig([^']*)"
)
_SPEC: Final = re.compile(r"\bshard_spec'?\s*[=:]\s*'?ShardSpec|\bnd_shard_spec=NdShardSpec")
_SPEC_GRID: Final = re.compile(r"\bgrid=" + _RANGES)
_SPEC_SHAPE: Final = re.compile(r"\b(?:shard_)?shape=(?:Shape\()?[\[{]([\d;,\s]*)")
_SPEC_ORDER: Final = re.compile(r"\borientation=(?:ShardOrientation::)?(\w+)")
_INPUT_SHAPE: Final = re.compile(r"\binput_tensor_shape'?\s*[=:]\s*'?(?:Shape\()?[\[{]([\d;,\s]+)")
_PAIR: Final = re.compile(r"\b(\w+_hw)\s*=\s*\((\d+)[;,]\s*(\d+)\)")
Settings = tuple[tuple[str, str], ...]


@lru_cache(maxsize=4096)
def settings_in(attributes: str) -> Settings:
    """Return the known settings with their values, always in the same order.

    >>> settings_in("{'program_config': 'MatmulConfig(in0_block_w=2)'}")
    (('activation', 'none'), ('program_config', 'MatmulConfig'), ('in0_block_w', '2'))
    """
    if not attributes:
        return ()
    found = {"activation": "+".join(dict.fromkeys(_functions(attributes))) or "none"}
    found.update(_shards_in(attributes))
    found.update(_shapes_in(attributes))
    found.update(_cores_in(attributes))
    for key, value in _SETTING.findall(attributes):
        # The first one: a key that stands again belongs to something inside.
        name = "sub_core_grids" if key == "sub_core_grid" else key.rstrip("_")
        if name in ORDER and name not in found:
            found[name] = _plain(name, value)
    return tuple(sorted(found.items(), key=lambda item: ORDER[item[0]]))


def function_in(attributes: str) -> str:
    """Return the function of an elementwise op, "" if unknown.

    >>> function_in("{'binary_op_type': 'BinaryOpType::MUL'; 'dtype': 'DataType::BFLOAT16'}")
    'MUL'
    """
    operator = _OPERATOR.search(attributes)
    return operator[1] if operator else "+".join(_functions(attributes))


@lru_cache(maxsize=4096)
def condense_settings(attributes: str) -> str:
    """Return the known settings of an op as short text.

    >>> condense_settings("{'program_config': 'MatmulConfig(in0_block_w=2)'; 'dtype': 'BFLOAT16'}")
    'activation=none program_config=MatmulConfig in0_block_w=2'
    """
    if not attributes:
        return ""
    settings = dict(settings_in(attributes))
    function, activation = function_in(attributes), settings.pop("activation")
    words = [f"activation={activation}"]
    if activation != "none":
        unary = function.split("+")
        applied = unary if list(dict.fromkeys(unary)) == activation.split("+") else None
        function = "" if applied else function
        words = [f"op_type=UnaryOpType::{name}" for name in applied or activation.split("+")]
    if function:
        words.append(f"binary_op_type=BinaryOpType::{function}")
    return " ".join([*words, *(f"{k}={v}" for k, v in settings.items() if v)])


def cores_of(grid: str) -> int:
    """Return how many cores a grid has, one rectangle or several.

    >>> cores_of("8x4"), cores_of("11x2+2x1@0-2")
    (32, 24)
    """
    count = 0
    for rectangle in grid.split("+"):
        width, _, height = rectangle.partition("@")[0].partition("x")
        count += int(width) * int(height)
    return count


def is_grid(text: str) -> bool:
    return _GRID.fullmatch(text) is not None


_GRID: Final = re.compile(r"\d+x\d+(?:@\d+-\d+)?(?:\+\d+x\d+(?:@\d+-\d+)?)*")


def _shards_in(attributes: str) -> dict[str, str]:
    """Return the shards of the output."""
    if "ShardSpec" not in attributes:
        return {}
    output = _OUTPUT.search(attributes)
    text = output[1] if output and "ShardSpec" in output[1] else attributes
    spec = _SPEC.search(text)
    if spec is None:
        return {}
    text = text[spec.start() :]
    found: dict[str, str] = {}
    grid, shape, order = (each.search(text) for each in (_SPEC_GRID, _SPEC_SHAPE, _SPEC_ORDER))
    if grid and _grid(grid[1]):
        found[SHARD_GRID] = _grid(grid[1])
    if shape and _dimensions(shape[1]).strip("0x"):  # zeros stand for: to be worked out
        found[SHARD_SHAPE] = _dimensions(shape[1])
    if order:
        found[SHARD_ORDER] = order[1]
    return found


def _cores_in(attributes: str) -> dict[str, str]:
    if "worker_grid" not in attributes and "core_grid" not in attributes:
        return {}
    found: dict[str, str] = {}
    for key, ranges in _CORES.findall(attributes):
        grid = _grid(ranges)
        if grid:
            found.setdefault("sub_core_grids" if key == "sub_core_grid" else key, grid)
    return found


def _shapes_in(attributes: str) -> dict[str, str]:
    """Return the image of a convolution or pooling, before flattening."""
    if "_hw" not in attributes and "input_tensor_shape" not in attributes:
        return {}
    found = {key: f"{h}x{w}" for key, h, w in _PAIR.findall(attributes)[::-1] if key in ORDER}
    shape = _INPUT_SHAPE.search(attributes)
    if shape and _dimensions(shape[1]):
        found["input_tensor_shape"] = _dimensions(shape[1])
    return found


def _grid(ranges: str) -> str:
    """Return ranges of cores as rectangles; "" if they are no ranges.

    >>> _grid("{[(x=0;y=0) - (x=4;y=3)]}"), _grid("{[0-0 - 7-6]; [0-7 - 5-7]}")
    ('5x4', '8x7+6x1@0-7')
    """
    numbers = [int(number) for number in re.findall(r"\d{1,9}", ranges)]
    corners = [numbers[at : at + 4] for at in range(0, len(numbers), 4)]
    if not corners or any(len(c) < 4 or c[2] < c[0] or c[3] < c[1] for c in corners):
        return ""
    return "+".join(
        f"{right - left + 1}x{bottom - top + 1}" + (f"@{left}-{top}" if left or top else "")
        for left, top, right, bottom in corners
    )


def _dimensions(text: str) -> str:
    return "x".join(re.findall(r"\d+", text))


def _functions(attributes: str) -> list[str]:
    # Most texts have none, and to see that is fast.
    return _FUNCTION.findall(attributes) if "UnaryOpType::" in attributes else []


def _plain(key: str, value: str) -> str:
    if value in {"std::nullopt", "none"}:
        return "none"
    if key == "compute_kernel_config":
        return "given"  # the name of its class depends on the chip
    if key in _SWITCHES:
        return _SPELLINGS.get(value, value)
    point = _POINT.fullmatch(value)
    if point:
        return "x".join(each for each in point.groups() if each)
    return value.rpartition("::")[2]


# Single values of any key, as texts, whole numbers or switches.

#: How a value is written that was not set.
_UNSET: Final = frozenset({"", "std::nullopt", "nullopt", "None"})
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_FLAGS: Final = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


@lru_cache(maxsize=4096)
def setting(attributes: str, key: str) -> str | None:
    """Return the value of a key; "" if unset, None if missing.

    >>> setting("{'program_config': 'Reuse(in0_block_w=2)'; 'bias': 'std::nullopt'}", "bias")
    ''
    >>> setting("{'program_config': 'Reuse(in0_block_w=2)'}", "program_config")
    'Reuse'
    """
    found = _pattern(key).search(attributes)
    if found is None:
        return None
    return "" if found[1] in _UNSET else found[1]


def whole(attributes: str, *keys: str) -> int | None:
    """Return the whole number of the first key that has one.

    >>> whole("Config(in0_block_w=2;per_core_M=1)", "K_block_size", "in0_block_w")
    2
    """
    values = (setting(attributes, key) for key in keys)
    return next((int(value) for value in values if value and _WHOLE.fullmatch(value)), None)


def flag(attributes: str, key: str) -> bool | None:
    """Return whether something is switched on; None if unknown.

    >>> flag("{'enable_act_double_buffer': 'false'}", "enable_act_double_buffer")
    False
    """
    return _FLAGS.get((setting(attributes, key) or "").lower())


@lru_cache(maxsize=64)
def _pattern(key: str) -> re.Pattern[str]:
    # Not as the end of a longer name, nor before the :: of a type. The name stands first, and what
    # may not be before it is asked afterwards: texts are long, and a plain start is found quickly.
    name = re.escape(key)
    return re.compile(
        rf"""{name}(?<![\w.]{name})(?!\w)['"]?\s*[=:](?!:)\s*['"]?([^\s;,'"(){{}}\[\]]*)"""
    )


class OpRow(NamedTuple):
    """One op of a listing; None for unknown values.

    ``number`` is its id: its place in the whole capture, from 1. ``name`` says what it computes on
    which shapes. The fractions are of the chip's DRAM bandwidth, and of what its cores compute at
    its fidelity. ``bound`` is what it cannot go below. ``stale``: with these shapes it would be
    faster than the chip, so they are not its own. ``region`` and ``step`` are where it belongs.
    ``cores`` are those that the profiler counts, ``working_cores`` those that have something to do.
    ``share`` is of its step, ``saving_ns`` the time above the roofline. ``bound_basis``: whether
    the fractions are measured or modelled. ``line`` and ``call`` are those of the file.
    """

    number: int
    region: str | None
    step: int | None
    device: int
    op: str
    name: str
    operands: str
    kernel_ns: float
    gap_ns: float | None
    cores: int | None
    fidelity: str | None
    dram_bytes: float | None
    dram_gb_s: float | None
    dram_fraction: float | None
    flops: float | None
    tflops: float | None
    compute_fraction: float | None
    bound: str | None
    stale: bool
    line: int | None = None
    call: int | None = None
    sub_device: int | None = None
    category: str = ""
    share: float | None = None
    working_cores: int | None = None
    size: str = ""
    dtypes: str = ""
    memory: str = ""
    config: str = ""
    bound_basis: str | None = None
    least_ns: float | None = None
    saving_ns: float | None = None
    host_ns: float | None = None
    noc_fraction: float | None = None
    multicast_fraction: float | None = None
    ethernet_fraction: float | None = None
    congestion_fraction: float | None = None
    sfpu_fraction: float | None = None


# What a row says of an op in a word or two: formats, places, sizes and settings.

_SHORT_TYPES: Final = {
    "FLOAT32": "FP32", "BFLOAT16": "BF16", "BFLOAT8_B": "BFP8", "BFLOAT4_B": "BFP4",
}  # fmt: skip
#: Settings as tags, in the order in which they are shown.
_TAGS: Final = {
    "num_workers_per_dram_bank": "workers", "in0_block_w": "w", "K_block_size": "K",
    "q_chunk_size": "q", "k_chunk_size": "k", "num_links": "links ", "topology": "",
}  # fmt: skip
#: Pairs of settings as one tag: height and width.
_PAIRS: Final = {
    ("out_subblock_h", "out_subblock_w"): "sub", ("subblock_h", "subblock_w"): "sub",
    ("out_subblock_h_ntiles", "out_subblock_w_ntiles"): "sub",
    ("per_core_M", "per_core_N"): "core", ("M_block_size", "N_block_size"): "block",
}  # fmt: skip
_SWITCH_TAGS: Final = {
    "enable_act_double_buffer": "ADB", "enable_weights_double_buffer": "WDB",
    "enable_split_reader": "SR", "force_split_reader": "SR", "fp32_dest_acc_en": "fp32",
    "packer_l1_acc": "L1acc", "gather_in0": "ring", "transpose_a": "aT", "transpose_b": "bT",
}  # fmt: skip
_PROGRAMS: Final = {"DRAMSharded": "DS", "1D": "1D", "MultiCastProgram": "2D"}
_PADDING: Final = re.compile(r"\b(?:padding|pad_hw)=\(+([\d;,()\s]+?)\)+;")
_WINDOWS: Final = ("window_hw", "stride_hw", "dilation_hw")


def dtypes_text(signature: Signature) -> str:
    """Return the formats of an op: ``BF16 x BFP4 => BF16``."""
    kinds = {Category.MATMUL: " x ", Category.CONV: " x "}
    sides = (signature.inputs[:2], signature.outputs[:1])
    names = [[_SHORT_TYPES.get(t.dtype, t.dtype) for t in side if t.dtype] for side in sides]
    given = kinds.get(category_of(signature.op), ", ").join(names[0])
    return " => ".join(filter(None, (given, *names[1])))


def memory_text(signature: Signature, attributes: str) -> str:
    """Return where operands lie; ``L1W/32`` in 32 width shards."""
    given = " x ".join(_place(tensor.memory) for tensor in signature.inputs[:2] if tensor.memory)
    grid = dict(settings_in(attributes)).get(SHARD_GRID, "")
    cores = f"/{cores_of(grid)}" if is_grid(grid) else ""
    made = (_place(tensor.memory, cores) for tensor in signature.outputs[:1] if tensor.memory)
    return " => ".join(filter(None, (given, *made)))


def _place(memory: str, cores: str = "") -> str:
    where, _, how = memory.partition("_")
    return f"{where}{how[0]}{cores}" if "SHARDED" in how else where


def product_size(signature: Signature, attributes: str) -> str:
    """Return batch, M, K and N of a product; else ""."""
    if len(signature.inputs) < 2 or not signature.outputs:
        return ""
    first, second, made = (_shape(each) for each in (*signature.inputs[:2], signature.outputs[0]))
    if min(map(len, (first, second, made))) < 2:
        return ""
    category = category_of(signature.op)
    if category is Category.MATMUL:
        batch = prod(made[:-2])
        inner = first[-2] if flag(attributes, "transpose_a") else first[-1]
        return f"{batch}*" * (batch > 1) + shape_text((made[-2], inner, made[-1]))
    if category is Category.CONV:
        return shape_text((made[-2], second[-2], made[-1]))
    return ""


@lru_cache(maxsize=4096)
def config_text(op: str, attributes: str) -> str:
    """Return the settings that decide how fast an op is, as tags."""
    found = dict(settings_in(attributes))
    program = found.get(PROGRAM, "")
    tags = [next((tag for name, tag in _PROGRAMS.items() if name in program), "")]
    rows = block_heights(attributes)
    tags += [f"ABH {rows[0]}/{rows[1]}"] if rows else []
    for key, tag in _TAGS.items():
        value = found.get(key) or setting(attributes, key) or ""
        tags += [f"{tag}{value}"] if value not in {"", "none"} else []
    for (height, width), tag in _PAIRS.items():
        if height in found and width in found:
            tags.append(f"{tag} {found[height]}x{found[width]}")
    if found.get("activation", "none") != "none" and not _runs_apart(attributes):
        tags.append(found["activation"])
    tags += [tag for key, tag in _SWITCH_TAGS.items() if found.get(key) == "on"]
    if "Halo" in op or category_of(op) is Category.CONV or "Pool" in op:
        tags += [f"{key[0]}{found[key]}" for key in _WINDOWS if key in found]
        padding = _PADDING.search(attributes)
        tags += [f"p{','.join(re.findall(r'[0-9]+', padding[1]))}"] if padding else []
    return " ".join(dict.fromkeys(filter(None, tags)))


def _runs_apart(attributes: str) -> bool:
    """Return whether a matmul leaves its activation to an op after it."""
    config, grid = (setting(attributes, key) for key in ("program_config", "user_core_coord"))
    return config == "" == grid and "user_fused_activation" in attributes


def block_heights(attributes: str) -> tuple[int, int] | None:
    """Return act_block_h of a convolution and its rows per core, in tiles.

    Releases of 2024 and 2025 name the second otherwise, one of them in rows.
    """
    block = whole(attributes, "act_block_h_ntiles")
    names = ("per_core_out_matrix_height_ntile", "per_core_out_matrix_height_ntiles")
    height = whole(attributes, *names)
    if height is None:
        rows = whole(attributes, "per_core_out_matrix_height")
        height = None if rows is None else -(-rows // 32)
    return None if block is None or height is None else (block, height)


def working_cores(
    signature: Signature, attributes: str, cores: int | None, banks: int
) -> int | None:
    """Count the cores that have something to do; None if unknown.

    The profiler counts where a kernel was started. Weights in all banks of DRAM are read by workers
    at each bank; what is sharded in L1 is worked on where a shard lies.
    """
    if is_dram_sharded(attributes):
        return banks * readers_per_bank(attributes) or None
    made = signature.outputs[:1]
    grid = dict(settings_in(attributes)).get(SHARD_GRID, "")
    if cores is None or not made or not is_grid(grid) or not _L1_SHARDS.match(made[0].memory):
        return cores
    return min(cores, cores_of(grid))


_L1_SHARDS: Final = re.compile(r"L1_\w*SHARDED")


class OpView(Struct, frozen=True):
    """One step of a region on its critical device."""

    region: Region
    step: int
    device: int
    rows: Sequence[OpRow]
    layers: Sequence[Layers]
    complete: int = 1

    @property
    def kernel_ns(self) -> float:
        return sum(row.kernel_ns for row in self.rows)

    @property
    def gaps_ns(self) -> float | None:
        """The sum of gaps, if recorded; negative ones count as 0."""
        gaps = [row.gap_ns for row in self.rows[1:] if row.gap_ns is not None]
        return sum(max(gap, 0.0) for gap in gaps) if gaps else None


def op_rows(table: OpTable) -> list[OpRow]:
    places: dict[int, tuple[str | None, int | None, float]] = {}
    for region in regions_of(table).regions:
        for number, step in enumerate(region.steps, start=1):
            for rows in step.values():
                whole_ns = sum(map(table.columns.kernel_ns.__getitem__, rows))
                places |= dict.fromkeys(rows, (region.name, number, whole_ns))
    board = board_of(table)

    @cache
    def words(signature: int, attributes: int, cores: int | None) -> dict[str, object]:
        text = "" if attributes < 0 else table.attribute_texts[attributes]
        own = table.signatures[signature]
        return {
            "name": op_name(own, text),
            "operands": operands_text(own),
            "category": own.category.value,
            "working_cores": working_cores(own, text, cores, board.dram_banks if board else 0),
            "size": product_size(own, text),
            "dtypes": dtypes_text(own),
            "memory": memory_text(own, text),
            "config": config_text(own.op, text),
        }

    found = []
    columns = table.columns
    for at, (op, line) in enumerate(zip(table, rooflines(table), strict=True)):
        name, place, whole_ns = places.get(at, (None, None, 0.0))
        own = words(columns.signature[at], columns.attributes[at], op.cores)
        share = op.kernel_ns / whole_ns if whole_ns else None
        found.append(_op_row(op, line, own)._replace(region=name, step=place, share=share))
    return found


def _op_row(op: Op, line: Roofline, words: Mapping[str, Any]) -> OpRow:
    moved = None if line.work.at_most else line.work.dram_bytes
    flops, kernel_ns, least_ns = line.work.flops, line.kernel_ns, line.least_ns
    known = bool(kernel_ns) and not line.stale
    measured = op.measured or Utilisation()
    seen = measured.dram is not None or measured.fpu is not None
    return OpRow(
        **words,
        number=op.number,
        region=None,
        step=None,
        device=op.device,
        op=op.signature.op,
        kernel_ns=kernel_ns,
        gap_ns=op.gap_ns,
        cores=op.cores,
        fidelity=op.fidelity,
        dram_bytes=moved,
        dram_gb_s=moved / kernel_ns if known and moved is not None else None,
        dram_fraction=line.dram_fraction,
        flops=flops,
        tflops=flops / kernel_ns / 1000 if known and flops is not None else None,
        compute_fraction=line.compute_fraction,
        bound=line.bound.value if line.bound else None,
        stale=line.stale,
        line=op.line or None,
        call=op.call,
        sub_device=op.sub_device,
        bound_basis=("measured" if seen else "modelled") if line.bound else None,
        least_ns=least_ns,
        saving_ns=None if least_ns is None else max(0.0, kernel_ns - least_ns),
        host_ns=op.host_ns,
        noc_fraction=measured.noc,
        multicast_fraction=measured.multicast,
        ethernet_fraction=measured.ethernet,
        congestion_fraction=measured.congestion,
        sfpu_fraction=measured.sfpu,
    )


def op_views(table: OpTable, rows: Sequence[OpRow]) -> Iterator[OpView]:
    """Yield the median step of each region, on its critical device."""
    signature = table.columns.signature
    for region in regions_of(table).regions:
        step = middle_steps(table, region)[0]
        chosen = critical_rows(table, step)
        # What the device waited for before a step is no gap of it.
        own = [rows[chosen[0]]._replace(gap_ns=None), *(rows[at] for at in chosen[1:])]
        kinds = [(signature[at], rows[at].name) for at in chosen]
        numbers: dict[object, int] = {}
        layers = find_layers([numbers.setdefault(kind, len(numbers)) for kind in kinds])
        at = region.steps.index(step) + 1
        device, complete = table.columns.device[chosen[0]], len(complete_steps(table, region))
        yield OpView(region, at, device, own, layers, complete)


def layer_rows(view: OpView, layers: Layers) -> list[OpRow]:
    """Return the ops of a layer with medians over its repeats."""
    block = view.rows[layers.start : layers.stop]
    repeats = [block[at :: layers.length] for at in range(layers.length)]
    return [
        rows[0]._replace(
            kernel_ns=median(row.kernel_ns for row in rows),
            gap_ns=_median(row.gap_ns for row in rows),
            dram_gb_s=_median(row.dram_gb_s for row in rows),
            dram_fraction=_median(row.dram_fraction for row in rows),
            tflops=_median(row.tflops for row in rows),
            compute_fraction=_median(row.compute_fraction for row in rows),
            share=sum(row.share or 0.0 for row in rows),
            saving_ns=_median(row.saving_ns for row in rows),
            bound=Counter(row.bound for row in rows).most_common(1)[0][0],
        )
        for rows in repeats
    ]


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
