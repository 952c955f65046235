"""Which rules are asked, with which limits."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.checklist.registry import RULES
from pytest_ttnn_perf.checklist.runner import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.checklist.rule import Rule
    from pytest_ttnn_perf.model.rule_settings import RuleSettings

#: The limits of a rule that are other than usual.
_Limits = tuple[tuple[str, float], ...]


class Selection(NamedTuple):
    """The rules that are asked: in their order, and by what they need."""

    rules: tuple[Rule, ...]
    groups: tuple[Group, ...]


def selected(
    select: Sequence[str], ignore: Sequence[str], settings: Mapping[str, RuleSettings]
) -> Selection:
    """Return the rules of some codes, or prefixes of codes, all if none is named.

    Raises:
        UsageError: a code that no rule begins with, a limit that a rule does not have, or no rule
            is left.
    """
    limits = tuple((code, tuple(rule.limits.items())) for code, rule in settings.items())
    return _selected(tuple(select), tuple(ignore), limits)


@lru_cache(maxsize=2)  # every test of a process asks for the same, and some for one rule more
def _selected(
    select: tuple[str, ...], ignore: tuple[str, ...], limits: tuple[tuple[str, _Limits], ...]
) -> Selection:
    for option, codes in (("select", select), ("ignore", ignore)):
        for code in codes:
            if not any(rule.code.startswith(code) for rule in RULES):
                message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
                raise UsageError(message)
    for code, _ in limits:
        if not any(rule.code == code for rule in RULES):
            message = f"rules.{code}: there is no such rule; `ttnn-perf rules` lists them"
            raise UsageError(message)
    given = dict(limits)
    asked = tuple(
        _limited(rule, given.get(rule.code, ()))
        for rule in RULES
        if _named(rule.code, select, otherwise=True) and not _named(rule.code, ignore)
    )
    if not asked:
        message = f"ignore: {', '.join(ignore)} leaves none of the rules that select names"
        raise UsageError(message)
    return Selection(asked, tuple(_groups(asked)))


def _groups(rules: Sequence[Rule]) -> Iterator[Group]:
    for needs in dict.fromkeys(rule.needs for rule in rules):
        alike = tuple(rule for rule in rules if rule.needs == needs)
        yield Group(needs, alike, tuple(rule.code for rule in alike))


def _named(code: str, prefixes: Iterable[str], *, otherwise: bool = False) -> bool:
    named = tuple(prefixes)
    return code.startswith(named) if named else otherwise


def _limited(kind: type[Rule], limits: _Limits) -> Rule:
    rule: Any = kind()
    known = [field.name for field in rule.limits()]
    unknown = sorted({name for name, _ in limits} - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        message = f"rules.{rule.code}: it has no limit {unknown[0]!r}; its limits: {names}"
        raise UsageError(message)
    limited: Rule = replace(rule, **dict(limits))
    return limited
