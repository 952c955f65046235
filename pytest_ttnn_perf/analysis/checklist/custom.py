"""Rules of other plugins and of conftest files, asked beside ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.checklist.registry import codes, replace_others
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Rule
from pytest_ttnn_perf.records.finding import Input, RuleOutcome, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.records.finding import Subject


#: Our own codes; nobody else's begin so.
OURS: Final = "TTP"
_CODE: Final = re.compile(r"[A-Z]{3}\d{3}")
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
        """Say what is wrong with the rule itself; None for nothing."""
        code: object = self.code
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            return f"a code is three capital letters and three digits, found {code!r}"
        if code.startswith(OURS):
            return f"{code}: codes that begin with {OURS} are those of ttnn-perf"
        parts: tuple[tuple[str, object, bool], ...] = (
            ("a name", self.name, isinstance(self.name, str) and bool(self.name.strip())),
            ("a severity", self.severity, isinstance(self.severity, Severity)),
            ("a function of a subject as check", self.check, callable(self.check)),
            ("a tuple of Input as needs", self.needs, _are_inputs(self.needs)),
        )
        for expected, value, right in parts:
            if not right:
                return f"{code}: expected {expected}, found {value!r}"
        return None


def _are_inputs(needs: object) -> bool:
    return isinstance(needs, tuple) and all(isinstance(each, Input) for each in needs)


_known = False


def use_custom_rules(rules: Sequence[tuple[CustomRule, str]] | None) -> None:
    """Ask these rules too, and no others than ours; each with the plugin that it is of.

    None: rules of others are not known in this process, or not yet. Codes that may be theirs are
    not refused then.
    """
    global _known  # noqa: PLW0603 (a process has one set of rules, as it has one registry)
    _known = rules is not None
    replace_others(_as_rule(rule, owner) for rule, owner in rules or ())


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
