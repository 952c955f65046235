"""Findings as a plan: what to do first, what each step saves, and what is left after it.

Estimates have 80 % intervals of what will be measured: from what such estimates were worth before,
and from what two measurements of the same differ in. Errors of estimates are taken to go together,
which is the wider choice. Nothing is saved twice, and nothing below the least time of the chip.
"""

from __future__ import annotations

from enum import Enum
from math import ceil, erf, inf, pi, sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.analysis.checklist.track_record import PARTS, spread_of
from pytest_ttnn_perf.records.finding import RuleOutcome, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.track_record import Spread
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
    nothing before that does. ``noise_ns`` is what one step differs from the next, as a standard
    deviation, and ``repeats`` how many there were.
    """

    region: str
    now_ns: float
    ideal_ns: float | None = None
    gaps_ns: float = 0.0
    replayed: bool = True
    waits: bool = False
    noise_ns: float = 0.0
    repeats: int = 1

    def noise_of(self, ops_ns: float | None) -> float:
        """Return the noise of a saving: of both times that it is the difference of, and of the ops.

        Both times are medians of as many steps as were seen here, the ops are those of one step.
        """
        if not self.noise_ns:
            return 0.0
        share = 1.0 if ops_ns is None else min(1.0, ops_ns / self.now_ns)
        return self.noise_ns * sqrt(2 * min(1.0, pi / 2 / self.repeats) + share)

    @property
    def room_ns(self) -> float:
        """What can be saved at all."""
        return max(0.0, self.now_ns - (self.ideal_ns or 0.0))


class PlanStep(NamedTuple):
    """A finding, what it saves after the steps before it, and what a step takes then.

    ``alone_ns`` is what it would save without them. ``spread`` is what the interval rests on.
    """

    finding: Finding
    saves: Span
    left: Span
    alone_ns: float
    spread: Spread


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


#: What steps are sorted by: the smallest comes first.
StepOrder = tuple[bool, bool, bool, float, str]
#: The first digits of the rules that say how a model gets faster.
_ADVICE: Final = frozenset("12345678")
#: The interval leaves out a tenth at each end.
_LOW, _HIGH = 0.1, 0.9
_NOTHING: Final[Mapping[str, Sequence[float]]] = {}


def plan_of(
    findings: Iterable[Finding],
    start: Start,
    tried: Mapping[str, Sequence[float]] = _NOTHING,
) -> Plan:
    """Return the plan that follows from the findings of one region.

    What two findings would save of the same op counts for the one that saves more; the other shows
    what it adds. ``tried`` are what steps here gained, in parts of the estimate, by rule.
    """
    found = [one for one in findings if one.outcome is RuleOutcome.FOUND and one.code[3] in _ADVICE]
    standing = [one for one in found if one.stands]
    told = [one for one in standing if one.saving_ns is not None]
    chosen = [one for one in told if is_step(one)]
    candidates = [
        Candidate(one, spread_of(one.code, tuple(tried.get(one.code, ())))) for one in chosen
    ]
    ordered = sorted(candidates, key=lambda one: one.order(start))
    steps = tuple(_steps(ordered, start))
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
        stopped=sum(one.expected_ns for one in candidates) > start.room_ns,
        untold=tuple(one for one in standing if one.saving_ns is None and not one.quiet),
        little=tuple(one for one in told if one not in chosen),
        waived=tuple(one for one in found if one.waived is not None),
    )


def _adds(finding: Finding) -> float:
    return (finding.saving_ns if finding.adds_ns is None else finding.adds_ns) or 0.0


class Candidate(NamedTuple):
    """A finding that may become a step, and what estimates of its rule are worth."""

    finding: Finding
    spread: Spread

    @property
    def most_ns(self) -> float:
        """What is there to save of its ops, but for what others save of them."""
        of_ns, adds = self.finding.of_ns, _adds(self.finding)
        if of_ns is None:  # a record of an earlier version does not tell
            return inf
        return max(adds, of_ns - ((self.finding.saving_ns or 0.0) - adds))

    @property
    def expected_ns(self) -> float:
        """What it adds, as the plan has it; nothing of an upper bound."""
        if self.finding.at_most:  # the profiler made it longer as it is
            return 0.0
        return min(_adds(self.finding) * self.spread.expected, self.most_ns)

    def outcomes_ns(self, start: Start) -> list[float]:
        """Return what it may add, all equally likely and in order."""
        adds, most, half = _adds(self.finding), self.most_ns, PARTS // 2
        if self.finding.at_most:
            return [0.0] * half + [adds] * half
        outcomes = [min(adds * ratio, most) for ratio in self.spread.ratios]
        if start.waits:  # the host may stay in the way
            outcomes[:half] = [0.0] * half
        return outcomes

    def order(self, start: Start) -> StepOrder:
        """Return its place in a plan."""
        expected_ns = None if self.finding.at_most else self.expected_ns
        return order_of_step(self.finding, waits=start.waits, expected_ns=expected_ns)


def is_step(finding: Finding) -> bool:
    """Tell whether a finding would save something that is worth a step."""
    advises = finding.stands and finding.code[3] in _ADVICE
    return advises and not finding.quiet and _adds(finding) > 0


def is_of_host(code: str) -> bool:
    """Tell whether a rule is about what a call takes beside its kernels."""
    return code.startswith(("TTP4", "TTP5"))


def order_of_step(finding: Finding, *, waits: bool, expected_ns: float | None = None) -> StepOrder:
    """Return what comes first: the host if it is in the way, then what is sure, then what is much.

    ``waits``: it is in the way. Upper bounds come last, and what is only for information before
    them. ``expected_ns`` is what it saves, where more is known of that than it says itself.
    """
    is_host = waits and is_of_host(finding.code)
    bound, info = finding.at_most, finding.severity is Severity.INFO
    amount_ns = _adds(finding) if expected_ns is None else expected_ns
    return not is_host, bound, info, -amount_ns, finding.code


def _steps(candidates: Iterable[Candidate], start: Start) -> Iterator[PlanStep]:
    room, now = start.room_ns, start.now_ns
    estimate = of_ns = 0.0
    total = [0.0] * PARTS
    for candidate in candidates:
        finding, spread = candidate
        outcomes = candidate.outcomes_ns(start)
        rest = max(0.0, room - estimate)
        saves = span_of(outcomes, candidate.expected_ns, start.noise_of(finding.of_ns), rest)
        if finding.at_most:
            saves = Span(0.0, None, min(outcomes[-1], rest))
        # Errors go together: the worst of one comes with the worst of the others.
        total = [min(one + other, room) for one, other in zip(total, outcomes, strict=True)]
        estimate = min(estimate + candidate.expected_ns, room)
        of_ns += finding.of_ns or 0.0
        low, _, high = span_of(total, estimate, start.noise_of(of_ns), room)
        left = Span(now - high, now - estimate, now - low)
        alone = (finding.saving_ns or 0.0) * (1.0 if finding.at_most else spread.expected)
        yield PlanStep(finding, saves, left, alone, spread)


def span_of(outcomes: Sequence[float], estimate: float, noise_ns: float, most: float = inf) -> Span:
    """Return the interval of what is measured of outcomes, around what is expected of them.

    Less than nothing is told as nothing.
    """
    estimate = min(estimate, most)
    low, high = (_measured(outcomes, noise_ns, part) for part in (_LOW, _HIGH))
    return Span(max(0.0, min(low, estimate)), estimate, max(min(high, most), estimate))


def _measured(outcomes: Sequence[float], noise_ns: float, part: float) -> float:
    """Return what this part of the outcomes is below, once each is measured with noise.

    >>> _measured([0.0, 100.0], 0.0, 0.1), round(_measured([100.0], 10.0, 0.9), 1)
    (0.0, 112.8)
    """
    if not noise_ns:
        return outcomes[max(0, ceil(part * len(outcomes)) - 1)]
    low, high = outcomes[0] - 4 * noise_ns, outcomes[-1] + 4 * noise_ns
    while high - low > noise_ns / 1000:
        middle = (low + high) / 2
        below = sum(erf((middle - one) / noise_ns / sqrt(2)) for one in outcomes) / len(outcomes)
        low, high = (middle, high) if (1 + below) / 2 < part else (low, middle)
    return high


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
