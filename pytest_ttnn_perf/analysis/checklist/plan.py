"""Findings as a plan: what to do first, what each step saves, and what is left after it.

Estimates have 80 % intervals from what such estimates were worth before. Their errors are taken to
go together, which is the wider choice: the interval of a sum runs from the sum of the low ends to
that of the high ends. Nothing is saved twice, and nothing below the least time of the chip.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.checklist.track_record import INEXACT, spread_of
from pytest_ttnn_perf.records.finding import RuleOutcome, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.records.finding import Finding


class Span(NamedTuple):
    """A time with its 80 % interval; ``estimate_ns`` is None where only bounds are known."""

    low_ns: float
    estimate_ns: float | None
    high_ns: float


@dataclass(frozen=True, slots=True)
class Start:
    """What a step of a region takes now, and the least that it can take; None if not known.

    ``gaps_ns`` of it are gaps between ops, of a step that is not ``replayed`` at most so much: a
    profiler makes them longer. ``waits``: the host holds it up, so that faster kernels change
    nothing before that does.
    """

    region: str
    now_ns: float
    ideal_ns: float | None = None
    gaps_ns: float = 0.0
    replayed: bool = True
    waits: bool = False

    @property
    def room_ns(self) -> float:
        """What can be saved at all."""
        return max(0.0, self.now_ns - (self.ideal_ns or 0.0))


class PlanStep(NamedTuple):
    """A finding, what it saves after the steps before it, and what a step takes then.

    ``alone_ns`` is what it would save without them. ``pairs`` is how many changes of its kind the
    interval rests on.
    """

    finding: Finding
    saves: Span
    left: Span
    alone_ns: float
    pairs: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps for a region, in the order to take them, and what they leave.

    ``saves`` is what all of them save. ``stopped``: there is more to save than the chip allows.
    ``untold`` are findings that cannot say what they would save, ``little`` those that add too
    little to be steps, ``waived`` those that the project does without.
    """

    start: Start
    steps: tuple[PlanStep, ...]
    saves: Span
    left: Span
    stopped: bool = False
    untold: tuple[Finding, ...] = ()
    little: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()


#: The first digits of the rules that say how a model gets faster.
_ADVICE: Final = frozenset("12345678")


def plan_of(findings: Iterable[Finding], start: Start) -> Plan:
    """Return the plan that follows from the findings of one region.

    What two findings would save of the same op counts for the one that saves more; the other shows
    what it adds.
    """
    found = [one for one in findings if one.outcome is RuleOutcome.FOUND and one.code[3] in _ADVICE]
    standing = [one for one in found if one.stands]
    told = [one for one in standing if one.saving_ns is not None]
    chosen = [one for one in told if not one.quiet and _adds(one) > 0]
    steps = tuple(_steps(sorted(chosen, key=lambda one: _order(one, start)), start))
    last = steps[-1].left if steps else Span(start.now_ns, start.now_ns, start.now_ns)
    saves = Span(
        start.now_ns - last.high_ns,
        start.now_ns - (start.now_ns if last.estimate_ns is None else last.estimate_ns),
        start.now_ns - last.low_ns,
    )
    return Plan(
        start,
        steps,
        saves,
        last,
        stopped=sum(_adds(one) for one in chosen if not one.at_most) > start.room_ns,
        untold=tuple(one for one in standing if one.saving_ns is None and not one.quiet),
        little=tuple(one for one in told if one not in chosen),
        waived=tuple(one for one in found if one.waived is not None),
    )


def _adds(finding: Finding) -> float:
    return (finding.saving_ns if finding.adds_ns is None else finding.adds_ns) or 0.0


def _most(finding: Finding) -> float:
    """Return what is there to save of the ops of a finding, but for what others save of them."""
    of_ns, adds = finding.of_ns, _adds(finding)
    if of_ns is None:  # a record of an earlier version does not tell
        return inf
    return INEXACT * max(adds, of_ns - ((finding.saving_ns or 0.0) - adds))


def _order(finding: Finding, start: Start) -> tuple[bool, bool, bool, float, str]:
    """Return what comes first: the host if it is in the way, then what is sure, then what is much.

    Upper bounds come last, and what is only for information before them.
    """
    is_host = start.waits and finding.code.startswith(("TTP4", "TTP5"))
    bound, info = finding.at_most, finding.severity is Severity.INFO
    return not is_host, bound, info, -_adds(finding), finding.code


def _steps(findings: Sequence[Finding], start: Start) -> Iterable[PlanStep]:
    room, now = start.room_ns, start.now_ns
    low = estimate = high = 0.0
    for finding in findings:
        adds, spread = _adds(finding), spread_of(finding.code)
        least, expected = adds * spread.low, adds
        most = min(adds * spread.high, _most(finding))
        if finding.at_most:
            least, expected, most = 0.0, 0.0, adds  # the profiler made it longer as it is
        elif start.waits:
            least = 0.0  # the host may stay in the way
        rest = max(0.0, room - estimate)
        saves = Span(
            min(least, rest), None if finding.at_most else min(expected, rest), min(most, rest)
        )
        low, high = min(low + least, room), min(high + most, room)
        estimate = min(estimate + expected, room)
        left = Span(now - high, now - estimate, now - low)
        yield PlanStep(finding, saves, left, finding.saving_ns or 0.0, spread.pairs)


class Chance(Enum):
    """Whether a plan gets to a target."""

    REACHED = "reached already"
    LIKELY = "likely"
    POSSIBLE = "possible"
    UNLIKELY = "unlikely"
    BEYOND = "not by this plan"
    NEVER = "not reachable"


class Reach(NamedTuple):
    """Whether a plan gets to a target, after which step, and what it leaves at best."""

    target_ns: float
    chance: Chance
    best_ns: float
    after: int | None = None


def reach_of(plan: Plan, target_ns: float) -> Reach:
    """Return whether a plan gets a step down to a target: the best chance, and the first step."""
    start, best = plan.start, plan.left.low_ns
    if start.now_ns <= target_ns:
        return Reach(target_ns, Chance.REACHED, best)
    if start.ideal_ns is not None and start.ideal_ns > target_ns:
        return Reach(target_ns, Chance.NEVER, best)
    for chance in (Chance.LIKELY, Chance.POSSIBLE, Chance.UNLIKELY):
        for number, step in enumerate(plan.steps, start=1):
            if _left_at(chance, step.left) <= target_ns:
                return Reach(target_ns, chance, best, number)
    return Reach(target_ns, Chance.BEYOND, best)


def _left_at(chance: Chance, left: Span) -> float:
    if chance is Chance.POSSIBLE and left.estimate_ns is not None:
        return left.estimate_ns
    return left.high_ns if chance is Chance.LIKELY else left.low_ns
