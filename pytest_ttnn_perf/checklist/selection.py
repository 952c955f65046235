"""Which rules are asked, with which limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.checklist.registry import RULES
from pytest_ttnn_perf.model.rule_settings import RuleSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.checklist.rule import Rule
    from pytest_ttnn_perf.model.finding import Severity


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule as this project has it; ``severity`` is None where it is the rule's own."""

    rule: Rule
    severity: Severity | None = None
    waived: str | None = None


def selected(
    select: Sequence[str], ignore: Sequence[str], settings: Mapping[str, RuleSettings]
) -> tuple[Asked, ...]:
    """Return the rules of some codes, or prefixes of codes, all if none is named.

    Raises:
        UsageError: a code that no rule begins with, a limit that a rule does not have, or no rule
            is left.
    """
    for option, codes in (("select", select), ("ignore", ignore)):
        for code in codes:
            if not any(rule.code.startswith(code) for rule in RULES):
                message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
                raise UsageError(message)
    for code in settings:
        if not any(rule.code == code for rule in RULES):
            message = f"rules.{code}: there is no such rule; `ttnn-perf rules` lists them"
            raise UsageError(message)
    asked = tuple(
        _asked(rule, settings.get(rule.code, RuleSettings()))
        for rule in RULES
        if _named(rule.code, select, otherwise=True) and not _named(rule.code, ignore)
    )
    if not asked:
        message = f"ignore: {', '.join(ignore)} leaves none of the rules that select names"
        raise UsageError(message)
    return asked


def _named(code: str, prefixes: Iterable[str], *, otherwise: bool = False) -> bool:
    named = tuple(prefixes)
    return code.startswith(named) if named else otherwise


def _asked(kind: type[Rule], settings: RuleSettings) -> Asked:
    rule: Any = kind()
    known = [field.name for field in rule.limits()]
    unknown = sorted(set(settings.limits) - set(known))
    if unknown:
        limits = ", ".join(known) or "none"
        message = f"rules.{rule.code}: it has no limit {unknown[0]!r}; its limits: {limits}"
        raise UsageError(message)
    return Asked(
        replace(rule, **settings.limits),
        settings.severity,
        settings.waive,
    )
