"""Single values out of the text that a profiler writes as an op's attributes.

The text is the profiler's own, nested, and its brackets do not always balance, so a value is found
by its key alone: ``'key': 'value'`` or ``key=value``, wherever it stands.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: How a value is written that was not set.
_UNSET: Final = frozenset({"", "std::nullopt", "nullopt", "None"})
_WHOLE: Final = re.compile(r"[0-9]{1,18}")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


@lru_cache(maxsize=4096)
def setting(attributes: str, key: str) -> str | None:
    """Return the value of a key up to its own arguments: "" if it is not set, None if not told.

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
    """Return whether something is switched on; None where that is not told.

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
