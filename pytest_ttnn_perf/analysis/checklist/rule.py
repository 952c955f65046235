"""What a rule is: a code, limits that can be set, and one question with four answers."""

from __future__ import annotations

import inspect
import re
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from pytest_ttnn_perf.records.finding import Evidence, Finding, RuleOutcome, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.records.finding import Input, Subject


#: How many places a finding names; the others are counted.
MOST_EVIDENCE: Final = 5
#: What each first digit of a code is about.
STEPS: Final = {
    "0": "validity",
    "1": "data formats",
    "2": "layouts",
    "3": "memory, sharding and cores",
    "4": "trace and host",
    "5": "command queues and transfers",
    "6": "convolutions",
    "7": "several devices",
    "8": "kernels",
    "9": "correctness and targets",
}
_SENTENCE_END: Final = re.compile(r"(?<=\.)\s")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rule says of one subject; ``value`` against ``limit``, both in ``unit``.

    ``severity`` is set where it is other than the rule's own.
    """

    outcome: RuleOutcome
    reason: str | None = None
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | None = None


class Rule:
    """One question. Subclasses are frozen dataclasses whose fields are the limits.

    The docstring is the documentation page, under fixed headings.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    #: One of these inputs is needed, the first that is there is used.
    needs: ClassVar[tuple[Input, ...]] = ()

    def check(self, subject: Subject) -> Answer:
        """Answer for a subject that has at least one of the inputs needed."""
        raise NotImplementedError

    @property
    def step(self) -> str:
        """What the rule is about."""
        return STEPS[self.code[3]]

    def limits(self) -> tuple[Field[Any], ...]:
        """Return the fields that are limits."""
        return fields(self)  # type: ignore[arg-type]  # every rule is a dataclass

    @classmethod
    def page(cls) -> str:
        """Return the documentation."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    @cache
    def fix(cls) -> str:
        """Return the first sentence of what to do."""
        advice = cls.page().partition("## What to do\n")[2].partition("\n\n")[0]
        return _SENTENCE_END.split(" ".join(advice.split()), maxsplit=1)[0]


def limit(default: float, *, unit: str, source: str) -> Any:
    """Declare a limit: its default, its unit, and where the figure comes from."""
    return field(default=default, metadata={"unit": unit, "source": source})


def clean(
    value: float | None = None,
    *,
    limit: float | None = None,
    unit: str = "",
    reason: str | None = None,
) -> Answer:
    """Answer that nothing is wrong."""
    return Answer(RuleOutcome.CLEAN, reason, value, limit, unit)


def found(
    reason: str,
    *,
    value: float | None = None,
    limit: float | None = None,
    unit: str = "",
    evidence: Iterable[Evidence] = (),
) -> Answer:
    """Answer that something is; the evidence that weighs most comes first."""
    return Answer(RuleOutcome.FOUND, reason, value, limit, unit, tuple(evidence)[:MOST_EVIDENCE])


def not_measured(reason: str) -> Answer:
    """Answer that it cannot be told."""
    return Answer(RuleOutcome.NOT_MEASURED, reason)


def not_applicable(reason: str) -> Answer:
    """Answer that the question does not arise."""
    return Answer(RuleOutcome.NOT_APPLICABLE, reason)


def finding_of(rule: Rule, answer: Answer) -> Finding:
    """Return an answer as the finding of its rule."""
    return Finding(
        rule.code,
        rule.name,
        answer.severity or rule.severity,
        answer.outcome,
        answer.reason,
        answer.value,
        answer.limit,
        answer.unit,
        answer.evidence,
        rule.fix() if answer.outcome is RuleOutcome.FOUND else None,
    )


class Trouble(NamedTuple):
    """One of the things that are wrong, with its own number, limit and unit."""

    text: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""


def found_troubles(troubles: Sequence[Trouble]) -> Answer:
    """Answer that all of these are wrong; the value is that of the first, which proves most."""
    first = troubles[0]
    return found(
        "; ".join(trouble.text for trouble in troubles),
        value=first.value,
        limit=first.limit,
        unit=first.unit,
        evidence=(Evidence(trouble.text, trouble.value, trouble.unit) for trouble in troubles),
    )
