"""Every rule there is, by its code: ours, imported when asked for, and those of other projects."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.checklist import rules
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Rule
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_ttnn_perf.records.finding import Subject


#: The first digit of a code tells its step.
_CODE: Final = re.compile(r"[A-Z]{3}\d{3}")
#: Rules that are not ours, by their code.
_REGISTERED: Final[dict[str, Rule]] = {}


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


#: Our own codes; nobody else's begin so.
OURS: Final = "TTP"
#: The beginning of a code that is not ours.
_PREFIX: Final = re.compile(r"(?!TTP)[A-Z]{3}\d{0,3}")


@dataclass(frozen=True, slots=True)
class CustomRule:
    """A rule of one's own. ``check`` is called for each test that has one of the inputs needed.

    ``code`` is three letters of your own and three digits, the first of which is the step of
    optimizing a model that the rule belongs to, as in our codes. ``fix`` says in a sentence what to
    do about a finding.
    """

    code: str
    name: str
    severity: Severity
    check: Callable[[Subject], Answer]
    fix: str = ""
    needs: tuple[Input, ...] = ()

    def problem(self) -> str | None:
        """Return what is wrong with the rule itself; None if nothing is."""
        code: object = self.code
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            return f"a code is three capital letters and three digits, found {code!r}"
        if code.startswith(OURS):
            return f"{code}: codes that begin with {OURS} are those of ttnn-perf"
        parts: tuple[tuple[str, object, bool], ...] = (
            ("a name", self.name, isinstance(self.name, str) and bool(self.name.strip())),
            ("a severity", self.severity, isinstance(self.severity, Severity)),
            ("a function of a subject as check", self.check, callable(self.check)),
            (
                "a tuple of Input as needs",
                self.needs,
                isinstance(self.needs, tuple)
                and all(isinstance(needed, Input) for needed in self.needs),
            ),
        )
        for expected, value, right in parts:
            if not right:
                return f"{code}: expected {expected}, found {value!r}"
        return None


_known = False


def use_custom_rules(rules: Sequence[tuple[CustomRule, str]] | None) -> None:
    """Ask these rules and ours; each with its plugin. Their codes were checked, and differ.

    None: rules of others are not known in this process, or not yet. Codes that may be theirs are
    not refused then.
    """
    global _known  # noqa: PLW0603 (a process has one set of rules, as it has one registry)
    _known = rules is not None
    _REGISTERED.clear()
    _REGISTERED.update((rule.code, _as_rule(rule, owner)) for rule, owner in rules or ())


def may_be_custom(code: str) -> bool:
    """Tell whether a code, or the beginning of one, may be that of a rule not known here."""
    if _known or not _PREFIX.fullmatch(code):
        return False
    return not any(known.startswith(code) for known in codes())


def _as_rule(custom: CustomRule, owner: str) -> Rule:
    """Return a rule in the shape of ours. What it does wrong is a finding, not an error of ours."""

    def look(subject: Subject) -> Answer:
        try:
            answer: object = custom.check(subject)
        except Exception as error:  # noqa: BLE001 (a rule of others may raise anything)
            return _broken(f"the rule, which is of {owner}, raised {type(error).__name__}: {error}")
        if isinstance(answer, Answer):
            return answer
        found = type(answer).__name__
        return _broken(f"the rule, which is of {owner}, returned {found} instead of an Answer")

    look.__doc__ = f"A rule of {owner}.\n\n## What to do\n\n{custom.fix}"
    return Rule(custom.code, custom.name, custom.severity, custom.needs, look, ("subject",), {})


def _broken(reason: str) -> Answer:
    """Fail the test: the rule could not tell."""
    return Answer(RuleOutcome.FOUND, reason, severity=Severity.ERROR)
