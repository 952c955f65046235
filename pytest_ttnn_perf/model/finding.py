"""What a checklist rule found in a test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Whether a finding fails its test (error) or is printed only."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class RuleOutcome(Enum):
    """How the evaluation of one rule ended."""

    CLEAN = "CLEAN"
    FOUND = "FOUND"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place where a rule's condition holds, with its own number.

    ``share`` is that number as a fraction of the time that the rule weighs; None where it is no
    time.
    """

    subject: str
    value: float | None = None
    unit: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Rules that have no answer, all for one reason: not measured, or not applicable.

    Most rules say so of most tests; one record for all of a kind keeps that cheap.
    """

    outcome: RuleOutcome
    reason: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeedlessWaiver:
    """A waiver that hides nothing; ``test`` is None for one of the configuration.

    What is not ``known`` is no rule at all.
    """

    code: str
    test: str | None
    known: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one rule on one test; ``value`` and ``limit`` are in ``unit``.

    ``fix`` says what to do about what was found, ``waived`` why the project does without that.
    """

    code: str
    name: str
    severity: Severity
    outcome: RuleOutcome
    reason: str | None = None
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    fix: str | None = None
    waived: str | None = None

    @property
    def stands(self) -> bool:
        """Whether something was found that nobody waived."""
        return self.outcome is RuleOutcome.FOUND and self.waived is None

    @property
    def fails(self) -> bool:
        """Whether it fails its test, where the checklist is enforced."""
        return self.stands and self.severity is Severity.ERROR
