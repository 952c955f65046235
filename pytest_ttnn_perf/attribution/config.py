"""What an op's attributes tell about how it was set up.

The text is the profiler's own and changes from release to release: brackets do not balance, and
names of types come and go. So only known keys are looked for, wherever they stand.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: Settings that decide how fast an op is: of matmuls, convolutions, norms, attention and
#: collectives, and what is fused into them. From the attributes that TTNN printed in 2024 to 2026.
_KEYS: Final = (
    "activation", "program_config",
    "in0_block_w", "out_subblock_h", "out_subblock_w", "out_block_h", "out_block_w",
    "per_core_M", "per_core_N", "compute_with_storage_grid_size",
    "M_block_size", "K_block_size", "N_block_size", "subblock_h", "subblock_w",
    "act_block_h_ntiles", "act_block_w_ntiles", "out_subblock_h_ntiles", "out_subblock_w_ntiles",
    "grid_size", "num_cores_nhw", "num_cores_c", "num_cores_c_in", "num_cores_c_out",
    "per_core_out_matrix_height_ntile", "per_core_out_matrix_width_ntile",
    "block_h", "block_w", "num_out_blocks",
    "q_chunk_size", "k_chunk_size", "max_cores_per_head_batch",
    "num_links", "num_workers_per_link", "num_buffers_per_channel", "chunks_per_sync", "topology",
)  # fmt: skip
#: Settings that are on or off, printed as 1 and 0 or as true and false.
_SWITCHES: Final = (
    "enable_act_double_buffer", "enable_weights_double_buffer", "enable_split_reader",
    "force_split_reader", "enable_activation_reuse", "full_inner_dim", "config_tensors_in_dram",
    "mcast_in0", "gather_in0", "fuse_batch", "transpose_mcast",
    "math_approx_mode", "fp32_dest_acc_en", "packer_l1_acc", "dst_full_sync_en",
    "exp_approx_mode", "use_multicore", "use_welford", "inplace",
)  # fmt: skip
_ORDER: Final = {key: place for place, key in enumerate((*_KEYS, *_SWITCHES))}
#: 'key': 'value' or key=value; a value ends where its own arguments begin.
_SETTING: Final = re.compile(r"\b(\w+)\b'?\s*[=:]\s*'?(\(x=\d+;\s*y=\d+\)|[^\s;'(){}\[\]]+)")
#: The functions that an elementwise op applies, or that are fused into another op.
_FUNCTION: Final = re.compile(r"\bop_type\s*=\s*UnaryOpType::(\w+)")
#: What an elementwise op of several inputs computes.
_OPERATOR: Final = re.compile(r"\b(?:binary|ternary)_op_type'?\s*[=:]\s*'?\w+::(\w+)")
_GRID: Final = re.compile(r"\(x=(\d+);\s*y=(\d+)\)|(\d+)-(\d+)")
_SPELLINGS: Final = {"1": "on", "true": "on", "0": "off", "false": "off"}

Settings = tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def settings_in(attributes: str) -> Settings:
    """Return the known settings with their values, always in the same order.

    >>> settings_in("{'program_config': 'MatmulConfig(in0_block_w=2)'}")
    (('activation', 'none'), ('program_config', 'MatmulConfig'), ('in0_block_w', '2'))
    """
    if not attributes:
        return ()
    found = {"activation": "+".join(dict.fromkeys(_functions(attributes))) or "none"}
    for key, value in _SETTING.findall(attributes):
        # The first one: a key that stands again belongs to something inside.
        if key in _ORDER and key not in found:
            found[key] = _plain(key, value)
    return tuple(sorted(found.items(), key=lambda item: _ORDER[item[0]]))


def function_in(attributes: str) -> str:
    """Return what an elementwise op computes, "" where its attributes do not tell.

    >>> function_in("{'binary_op_type': 'BinaryOpType::MUL'; 'dtype': 'DataType::BFLOAT16'}")
    'MUL'
    """
    operator = _OPERATOR.search(attributes)
    return operator[1] if operator else "+".join(_functions(attributes))


def _functions(attributes: str) -> list[str]:
    # Most texts have none, and to see that is fast.
    return _FUNCTION.findall(attributes) if "UnaryOpType::" in attributes else []


def _plain(key: str, value: str) -> str:
    if value == "std::nullopt":
        return "none"
    if key in _SWITCHES:
        return _SPELLINGS.get(value, value)
    grid = _GRID.fullmatch(value)
    if grid:
        return "x".join(each for each in grid.groups() if each)
    return value.rpartition("::")[2]
