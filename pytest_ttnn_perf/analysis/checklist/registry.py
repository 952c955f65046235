"""Every rule there is, by its code. A rule of ours is imported when it is asked for, not before."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.checklist import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.analysis.checklist.rule import Rule
    from pytest_ttnn_perf.records.finding import Input


#: The first digit of a code tells its step.
_CODE: Final = re.compile(r"[A-Z]{3}\d{3}")
#: Rules that are not ours, by their code.
_REGISTERED: Final[dict[str, Rule]] = {}


def register(rule: Rule) -> None:
    """Add a rule of another project.

    Raises:
        UsageError: its code is none, or that of another rule.
    """
    if not _CODE.fullmatch(rule.code):
        message = f"{rule.code}: expected a code of three capitals and three digits, as ABC301"
        raise UsageError(message)
    if rule.code in codes():
        message = f"{rule.code}: another rule has this code; `ttnn-perf rules` lists them"
        raise UsageError(message)
    _REGISTERED[rule.code] = rule


def replace_others(others: Iterable[Rule]) -> None:
    """Have these rules of other projects, in place of those there were."""
    _REGISTERED.clear()
    for rule in others:
        register(rule)


def codes() -> tuple[str, ...]:
    """Return the codes of all rules in their order."""
    return tuple(sorted((*_modules(), *_REGISTERED)))


def rule_of(code: str) -> Rule:
    """Return the rule of a code, one of ``codes``."""
    if code in _REGISTERED:
        return _REGISTERED[code]
    name, _ = _modules()[code]
    module = import_module(f"{rules.__name__}.{name}")
    found: Rule = getattr(module, name.partition("_")[2])
    return found


def needs_of(code: str) -> tuple[Input, ...]:
    """Return what the rule of a code needs, without importing it."""
    return _REGISTERED[code].needs if code in _REGISTERED else _modules()[code].needs


def all_rules() -> tuple[Rule, ...]:
    """Return all rules in the order of their codes."""
    return tuple(map(rule_of, codes()))


class _Module(NamedTuple):
    name: str
    needs: tuple[Input, ...]


@cache
def _modules() -> Mapping[str, _Module]:
    """Return the modules of our rules by code: ``ttp203_layout_conversions`` has TTP203."""
    return {
        name.partition("_")[0].upper(): _Module(name, needs)
        for needs, names in rules.BY_NEEDS.items()
        for name in names
    }
