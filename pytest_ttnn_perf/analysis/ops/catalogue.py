"""The ops of two tables by number, so that sequences of thousands compare as integers."""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.ops import short_code

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor


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


#: Codes that TTNN renamed; the op is the same. Until 2025 a convolution was OptimizedConvNew.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d"}
#: Codes of ops that are many: which, stands in their attributes.
_ELEMENTWISE: Final = ("Unary", "Binary", "Ternary")


class Variant(NamedTuple):
    """An op with everything that may explain its time."""

    signature: Signature
    cores: int | None
    fidelity: str | None
    attributes: str


@dataclass(frozen=True, slots=True)
class Likeness:
    """In what variants can be alike: for each variant a number; equal ones are alike in that.

    ``code``: what it computes. ``exact``: that and its operands. ``padded``, ``logical``: that and
    those shapes of all operands. ``ends``: that and the padded shapes of the first input and the
    first output. ``format``: whatever is told of the operands but sizes and memory.
    """

    exact: list[int] = field(default_factory=list)
    padded: list[int] = field(default_factory=list)
    logical: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    format: list[int] = field(default_factory=list)


class _Numbered(dict[tuple[int, int | None, int, int], int]):
    """The number of a row's variant by what its table holds of it."""

    def __init__(self, table: OpTable, catalogue: Catalogue) -> None:
        super().__init__()
        self._table = table
        self._catalogue = catalogue

    def __missing__(self, key: tuple[int, int | None, int, int]) -> int:
        number = self[key] = self._catalogue.number_of(_variant(self._table, *key))
        return number


class Catalogue:
    """Numbers the variants of two tables, in the order they are met."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.alike = Likeness()
        self._numbers: dict[Variant, int] = {}
        self._traits: dict[Hashable, int] = {}

    def numbered(self, table: OpTable) -> list[int]:
        """Return the variants of a table's rows, by number."""
        c = table.columns
        keys = zip(c.signature, c.cores, c.fidelity, c.attributes, strict=True)
        return list(map(_Numbered(table, self).__getitem__, keys))

    def number_of(self, variant: Variant) -> int:
        """Return the number of a variant."""
        number = self._numbers.setdefault(variant, len(self.variants))
        if number == len(self.variants):
            self.variants.append(variant)
            self._add_likeness(variant)
        return number

    def _add_likeness(self, variant: Variant) -> None:
        code, alike = _code(variant), self.alike
        inputs, outputs = variant.signature.inputs, variant.signature.outputs
        padded = code, _padded(inputs), _padded(outputs)
        alike.code.append(self._same(code))
        alike.exact.append(self._same((code, inputs, outputs)))
        alike.padded.append(self._same(padded))
        alike.logical.append(self._same((code, _logical(inputs), _logical(outputs))))
        alike.ends.append(self._same((code, padded[1][:1], padded[2][:1])))
        alike.format.append(self._same((_formats(inputs), _formats(outputs))))

    def _same(self, trait: Hashable) -> int:
        """Return the number that stands for a trait."""
        return self._traits.setdefault(trait, len(self._traits))


def _variant(
    table: OpTable, signature: int, cores: int | None, fidelity: int, attributes: int
) -> Variant:
    return Variant(
        table.signatures[signature],
        cores,
        None if fidelity < 0 else table.fidelities[fidelity],
        "" if attributes < 0 else table.attribute_texts[attributes],
    )


def _code(variant: Variant) -> str:
    """Return what an op computes, without what differs between releases."""
    code = _plain_code(variant.signature.op)
    return code + function_in(variant.attributes) if code.startswith(_ELEMENTWISE) else code


@lru_cache(maxsize=1024)
def _plain_code(op: str) -> str:
    short = short_code(op)
    return _RENAMED.get(short, short)


def _padded(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.padded for tensor in tensors])


def _logical(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.logical or tensor.padded for tensor in tensors])


def _formats(tensors: tuple[Tensor, ...]) -> tuple[tuple[str, str, int], ...]:
    return tuple([(tensor.dtype, tensor.layout, len(tensor.padded)) for tensor in tensors])


@lru_cache(maxsize=1024)
def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape.

    >>> shape_text((1, 1, 32, 4096))
    '1x1x32x4096'
    """
    return "x".join(map(str, shape))


def calling_shape(signature: Signature) -> str:
    """Return the shape that tells an op from others of its kind: that of what goes in first.

    For a matrix product that is not enough: all projections of a layer take the same.
    """
    operands = signature.inputs or signature.outputs
    if not operands:
        return ""
    first = shape_text(_logical_words(operands[0]))
    if "Matmul" in signature.op and len(operands) > 1:
        return f"{first} @ {shape_text(_logical_words(operands[1])[-2:])}"
    return first


def operands_text(signature: Signature) -> str:
    """Return all operands in one line; ``32[1]`` is a dimension of 1 that is padded to 32."""
    sides = (signature.inputs, signature.outputs)
    return " -> ".join(", ".join(map(_tensor, side)) for side in sides if side)


def _logical_words(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _tensor(tensor: Tensor) -> str:
    logical = _logical_words(tensor)
    shape = shape_text(logical)
    if logical != tensor.padded:
        both = zip(tensor.padded, logical, strict=False)
        shape = "x".join(f"{n}" if n == m else f"{n}[{m}]" for n, m in both)
    return " ".join(filter(None, [shape, tensor.dtype, tensor.layout, tensor.memory]))
