"""Single values out of the text a profiler writes as an op's attributes.

The text is one of several spellings, nested, and its brackets do not always balance, so a value is
found by its key alone: ``'key': 'value'`` as Python prints a dictionary, ``key=value`` as in
``Config(in0_block_w=2;out_subblock_h=1)``, or ``"key":value``. Commas are semicolons there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

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
