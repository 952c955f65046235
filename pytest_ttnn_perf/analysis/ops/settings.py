"""What the attributes of an op tell: how it is set up, and what it computes.

TTNN prints them in spellings of its own, which changed from 2024 to 2026 and do not always close
their brackets: they are read key by key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

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
#: All settings, in the order in which they are told.
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
    """Return what an elementwise op computes, "" where its attributes do not tell.

    >>> function_in("{'binary_op_type': 'BinaryOpType::MUL'; 'dtype': 'DataType::BFLOAT16'}")
    'MUL'
    """
    operator = _OPERATOR.search(attributes)
    return operator[1] if operator else "+".join(_functions(attributes))


@lru_cache(maxsize=4096)
def condense_settings(attributes: str) -> str:
    """Return what is known of an op's settings as a text that tells the same, and no more.

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
    """Tell whether a value is a grid as settings have it."""
    return _GRID.fullmatch(text) is not None


_GRID: Final = re.compile(r"\d+x\d+(?:@\d+-\d+)?(?:\+\d+x\d+(?:@\d+-\d+)?)*")


def _shards_in(attributes: str) -> dict[str, str]:
    """Return how the output is cut into shards; nothing where it is not, or is not told."""
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
    """Return the cores that an op may use, where they are told as ranges."""
    if "worker_grid" not in attributes and "core_grid" not in attributes:
        return {}
    found: dict[str, str] = {}
    for key, ranges in _CORES.findall(attributes):
        grid = _grid(ranges)
        if grid:
            found.setdefault("sub_core_grids" if key == "sub_core_grid" else key, grid)
    return found


def _shapes_in(attributes: str) -> dict[str, str]:
    """Return what a convolution or a pooling is given, before it is flattened."""
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
