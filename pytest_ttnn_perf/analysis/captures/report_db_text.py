"""The texts in which TTNN describes tensors and configurations.

They look like code or JSON and are neither, and each release spells them a little differently, so
values are found by their key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.records.ttnn_report import BufferType, ConvConfig, CoreRange, Shard

if TYPE_CHECKING:
    from collections.abc import Mapping


#: A value without quotes. A group in brackets is taken whole where it is simple; anything else ends
#: where the next value, or the end of its group, begins.
_BARE: Final = r"""
    \([^()]*(?:\([^()]*\)[^()]*)*\) | \{[^{}]*\} | \[[^\[\]]*\] | [^;,(){}\[\]'"]*(?:\([^()]*\))?
"""
_TRUE: Final = frozenset({"true", "1"})
_FALSE: Final = frozenset({"false", "0"})


def attribute(text: str, key: str) -> str | None:
    """Return what the attributes say for a key; None where they do not.

    An attribute of the op itself comes before one of the same name inside another; then the first
    one counts.

    >>> attribute("{'groups': '1'; 'config': 'Block(act_block_h_ntiles=4;w=2)'}", "config")
    'Block(act_block_h_ntiles=4;w=2)'
    >>> attribute("{'groups': '1'; 'config': 'Block(act_block_h_ntiles=4;w=2)'}", "w")
    '2'
    """
    own, inner = _patterns(key)
    found = own.search(text) or inner.search(text)
    if found is None:
        return None
    return next(value for value in found.groups() if value is not None).strip()


def attribute_int(text: str, key: str) -> int | None:
    """Return a whole number; None where the key is missing or is none, as ``std::nullopt``.

    >>> attribute_int("in0_block_w=2;out_subblock_h=1", "out_subblock_h")
    1
    """
    value = attribute(text, key)
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def attribute_flag(text: str, key: str) -> bool | None:
    """Return a flag, written true, false, 1 or 0; None where the key is missing or is none.

    >>> attribute_flag("{'enable_act_double_buffer': 'false'}", "enable_act_double_buffer")
    False
    """
    value = (attribute(text, key) or "").lower()
    if value in _TRUE:
        return True
    return False if value in _FALSE else None


@lru_cache(maxsize=256)
def _patterns(key: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    name = re.escape(key)
    own = rf"""'{name}'\ ?:\ ?(?: '([^']*)' | "([^"]*)" | ({_BARE}) )"""
    # Not as the end of a longer name: dtype is not weights_dtype; nor of a type: Type::NAME.
    inner = rf"""(?<![\w.])"?{name}(?!\w)"?\ ?(?:=|:(?!:))\ ?(?: "([^"]*)" | ({_BARE}) )"""
    return re.compile(own, re.VERBOSE), re.compile(inner, re.VERBOSE)


_NONE: Final = frozenset({"", "None", "nullopt", "NONE", "null"})
_NAME: Final = re.compile(r"\w+\Z")
#: An extent may be followed by the padded one, as in 5[32].
_EXTENT: Final = re.compile(r"(\d{1,18})(?:\[\d{1,18}\])?")
_OF_SHAPES: Final = frozenset("0123456789[], ")
_SHARD_SHAPE: Final = re.compile(r'(?<!\w)"?(?:shard_)?shape"?\s?[=:]\s?(?:\w+\()?[\[{(]([\d,; ]+)')
_CORE: Final = r"""\(?\{?(?:"?x"?[=:])?\s?(\d{1,6})[-,]\s?(?:"?y"?[=:])?\s?(\d{1,6})"""
_RANGE: Final = re.compile(rf"""(?:"start":)?{_CORE}[)}}]?\s?(?:-|,\s?"end":)\s?{_CORE}""")
#: No configuration is longer: what is, was written to keep a reader busy.
_LONGEST: Final = 20_000
_CONV: Final = re.compile(r"\bConv[123]dConfig\s?[({]")
_BUFFER_TYPES: Final = (
    BufferType.DRAM,
    BufferType.L1,
    BufferType.SYSTEM_MEMORY,
    BufferType.L1_SMALL,
    BufferType.TRACE,
)


def bare_name(text: str | None) -> str | None:
    """Return the name without its type, in capitals; None for what stands for nothing.

    >>> bare_name("DataType::BFLOAT8_B"), bare_name("Layout.TILE"), bare_name("torch.bfloat16")
    ('BFLOAT8_B', 'TILE', 'BFLOAT16')
    >>> bare_name("std::nullopt")
    """
    found = _NAME.search((text or "").strip())
    return None if found is None or found[0] in _NONE else found[0].upper()


def buffer_type(value: int | str) -> BufferType:
    """Return the type behind its number or its name.

    >>> buffer_type(3) is buffer_type("BufferType::L1_SMALL") is BufferType.L1_SMALL
    True
    """
    name = bare_name(value) if isinstance(value, str) else None
    number = value if isinstance(value, int) else int(name) if name and name.isdecimal() else -1
    if 0 <= number < len(_BUFFER_TYPES):
        return _BUFFER_TYPES[number]
    return BufferType.__members__.get(name or "", BufferType.OTHER)


def shape_of(text: str | None) -> tuple[int, ...] | None:
    """Return a logical shape; None where there is none to be read.

    >>> shape_of("Shape([1, 64])"), shape_of("torch.Size([3])"), shape_of("Shape([])")
    ((1, 64), (3,), ())
    """
    _, opening, rest = (text or "").partition("[")
    inner, closing, _ = rest.rpartition("]")
    if not (opening and closing and _OF_SHAPES.issuperset(inner)):
        return None
    return tuple(int(extent) for extent in _EXTENT.findall(inner))


def memory_of(text: str | None) -> str | None:
    """Return where a tensor lies and how it is spread.

    >>> memory_of("MemoryConfig(memory_layout=A::INTERLEAVED,buffer_type=B::DRAM,x=1)")
    'DRAM_INTERLEAVED'
    """
    if text is None or len(text) > _LONGEST:
        return None
    kind, layout = (bare_name(attribute(text, key)) for key in ("buffer_type", "memory_layout"))
    return f"{kind}_{layout}" if kind and layout else kind or layout


def shard_of(text: str | None) -> Shard | None:
    """Return how a memory configuration cuts a tensor; None where it does not."""
    # The first is what old and new releases have; the second alone knows more than two dimensions.
    if text is None or len(text) > _LONGEST:
        return None
    for key in ("shard_spec", "nd_shard_spec"):
        begin = re.search(rf"(?<!\w){key}=(?!std|None|nullopt)", text)
        if begin is None:
            continue
        spec = text[begin.end() :].partition(",nd_shard_spec=")[0]
        shape = _SHARD_SHAPE.search(spec)
        if shape is not None:
            extents = tuple(int(extent) for extent in re.findall(r"\d{1,18}", shape[1]))
            return Shard(extents, core_ranges(spec))
    return None


def core_ranges(text: str) -> tuple[CoreRange, ...]:
    """Return the rectangles of cores in a text, however it spells them.

    >>> core_ranges("{[0-0 - 7-7]}") == core_ranges("{[(x=0,y=0) - (x=7,y=7)]}")
    True
    >>> core_ranges('[{"start":{"x":0,"y":0},"end":{"x":7,"y":7}]')
    (CoreRange(x0=0, y0=0, x1=7, y1=7),)
    """
    return tuple(CoreRange(*map(int, corners)) for corners in _RANGE.findall(text))


def conv_of(arguments: Mapping[str, str]) -> ConvConfig | None:
    """Return the configuration that a convolution was given, by keyword or by position."""
    named = arguments.get("conv_config", "")
    texts = (named, *arguments.values())
    found = next((each for each in texts if _CONV.search(each, 0, _LONGEST)), None)
    if found is None:
        return None
    text = found[:_LONGEST]
    activation = attribute(text, "activation") or ""
    return ConvConfig(
        weights_dtype=bare_name(attribute(text, "weights_dtype")),
        activation=bare_name(attribute(activation, "op_type") or activation),
        shard_layout=bare_name(attribute(text, "shard_layout")),
        output_layout=bare_name(attribute(text, "output_layout")),
        act_block_h_override=attribute_int(text, "act_block_h_override"),
        act_block_w_div=attribute_int(text, "act_block_w_div"),
        enable_act_double_buffer=attribute_flag(text, "enable_act_double_buffer"),
        enable_weights_double_buffer=attribute_flag(text, "enable_weights_double_buffer"),
        deallocate_activation=attribute_flag(text, "deallocate_activation"),
        reallocate_halo_output=attribute_flag(text, "reallocate_halo_output"),
        reshard_if_not_optimal=attribute_flag(text, "reshard_if_not_optimal"),
        override_sharding_config=attribute_flag(text, "override_sharding_config"),
        transpose_shards=attribute_flag(text, "transpose_shards"),
        config_tensors_in_dram=attribute_flag(text, "config_tensors_in_dram"),
        enable_activation_reuse=attribute_flag(text, "enable_activation_reuse"),
        full_inner_dim=attribute_flag(text, "full_inner_dim"),
    )
