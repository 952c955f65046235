"""Plans: steps with savings, the rest, and the reach of a target.

Nothing is saved twice, and nothing below the least time of the chip. That is, of every matmul,
convolution and attention: its weights are read from DRAM once, in the format that the plan gives
them, or all cores compute its products at LoFi, whichever takes longer. All else may be fused, stay
in L1, or go, and counts nothing. Experts and sparse matmuls have no model, which is said.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from math import isfinite, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of, model_kind
from pytest_ttnn_perf.analysis.checklist.operands import PRODUCTS
from pytest_ttnn_perf.analysis.checklist.products import is_dense_matmul
from pytest_ttnn_perf.analysis.checklist.savings import (
    critical_ops,
    gaps_of,
    step_ns,
    told_gaps_ns,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BYTES,
    board_of,
    board_of_arch,
    in_dram,
    rooflines,
    work_of,
)
from pytest_ttnn_perf.analysis.rules.every_test import trace_not_used
from pytest_ttnn_perf.analysis.rules.kernels import kernels_of
from pytest_ttnn_perf.core.finding import Family, RuleOutcome, Severity
from pytest_ttnn_perf.core.metric import (
    KERNEL_TIME,
    SIM_THROUGHPUT_TIME,
    SIM_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    median,
    metric_in,
)
from pytest_ttnn_perf.core.ops import CALLS, Category
from pytest_ttnn_perf.core.text import NANOSECONDS_IN, percent
from pytest_ttnn_perf.gate.rules_on_numbers import (
    device_behind_e2e,
    low_io_overlap,
    transfer_bound,
)
from pytest_ttnn_perf.report.findings import ModelKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.core.finding import Finding, Subject
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.ops import OpGroups, OpTable, Signature
    from pytest_ttnn_perf.core.settings import RuleSettings

#: Rules on what a call takes by the clock, beyond the kernels.
_OF_CALLS: Final = frozenset(
    rule.code for rule in (trace_not_used, device_behind_e2e, low_io_overlap, transfer_bound)
)
_BY_CLOCK: Final = (WALL_TIME, THROUGHPUT_TIME)
#: What whole calls take, also by the clock of a simulated device.
_CALL_TIMES: Final = (*_BY_CLOCK, SIM_TIME, SIM_THROUGHPUT_TIME)


class Start(Struct, frozen=True):
    """Time of a step now, and its least time; None if unknown.

    ``gaps_ns`` of it are gaps between ops, of a step that is not ``replayed`` at most so much: a
    profiler makes them longer. ``waits``: the host holds it up, so that faster kernels change
    nothing before that does. ``narrow_ns`` is the least time with weights in bfloat8_b;
    ``no_model`` names what neither counts.
    """

    region: str
    now_ns: float
    ideal_ns: float | None = None
    narrow_ns: float | None = None
    no_model: str = ""
    gaps_ns: float = 0.0
    replayed: bool = True
    waits: bool = False

    @property
    def room_ns(self) -> float:
        """The most that can be saved."""
        return max(0.0, self.now_ns - (self.ideal_ns or 0.0))


class PlanStep(NamedTuple):
    """A finding with its saving after the steps before it.

    ``best_ns`` is what is left if all bounds up to here are had in full: what is saved at most is
    not counted in ``left_ns``.
    """

    finding: Finding
    saves_ns: float
    left_ns: float
    best_ns: float

    @property
    def alone_ns(self) -> float:
        """The saving without the steps before it."""
        return self.finding.saving_ns or 0.0


class Plan(Struct, frozen=True):
    """The steps for a region, in the order to take them.

    ``stopped``: there is more to save than the chip allows. ``untold`` are findings that cannot say
    what they would save, ``little`` those that add too little to be steps, ``waived`` those that
    the project does without.
    """

    start: Start
    steps: tuple[PlanStep, ...]
    stopped: bool = False
    untold: tuple[Finding, ...] = ()
    little: tuple[Finding, ...] = ()
    waived: tuple[Finding, ...] = ()

    @property
    def left_ns(self) -> float:
        """The time of a step after all of them."""
        return self.steps[-1].left_ns if self.steps else self.start.now_ns

    @property
    def best_ns(self) -> float:
        """The time of a step if all bounds are had in full."""
        return self.steps[-1].best_ns if self.steps else self.start.now_ns


def plan_of(findings: Iterable[Finding], start: Start) -> Plan:
    """Return the plan that follows from the findings of one region."""
    found = [one for one in findings if one.outcome is RuleOutcome.FOUND and one.family.is_advice]
    standing = [one for one in found if one.stands]
    told = [one for one in standing if one.saving_ns is not None]
    chosen = sorted(filter(is_step, told), key=lambda one: order_of_step(one, waits=start.waits))
    if start.narrow_ns is not None and any(one.code == _NARROWS for one in chosen):
        start = replace(start, ideal_ns=start.narrow_ns)
    steps: list[PlanStep] = []
    saved = at_best = 0.0
    for finding in chosen:
        saves = min(finding.added_ns, start.room_ns - saved)
        saved += 0.0 if finding.at_most else saves
        at_best = min(at_best + finding.added_ns, start.room_ns)
        steps.append(PlanStep(finding, saves, start.now_ns - saved, start.now_ns - at_best))
    return Plan(
        start,
        tuple(steps),
        stopped=sum(one.added_ns for one in chosen if not one.at_most) > start.room_ns,
        untold=tuple(one for one in standing if one.saving_ns is None and not one.quiet),
        little=tuple(one for one in told if one not in chosen),
        waived=tuple(one for one in found if one.waived is not None),
    )


#: The rule that makes weights narrower.
_NARROWS: Final = "TTP101"


def is_step(finding: Finding) -> bool:
    """Return whether a finding saves enough for a step."""
    advises = finding.stands and finding.family.is_advice
    return advises and not finding.quiet and finding.added_ns > 0


def is_of_host(code: str) -> bool:
    """Return whether a rule is about the host side of a call."""
    return Family.HOST.has(code) or Family.QUEUES.has(code)


#: The goals of kernels in their order: cores, traffic, blocks; what overlaps comes last.
_GOAL_OF: Final = {"TTP801": -4, "TTP807": -4, "TTP809": -3, "TTP811": -3, "TTP810": -2}


def order_of_step(finding: Finding, *, waits: bool) -> tuple[bool, bool, int, bool, float, str]:
    """Sort key: a host that ``waits``, then the sure, then the large."""
    is_host = waits and is_of_host(finding.code)
    bound, info = finding.at_most, finding.severity is Severity.INFO
    goal = _GOAL_OF.get(finding.code, 0)
    return not is_host, bound, goal, info, -finding.added_ns, finding.code


class Chance(Enum):
    """The chance of a plan to reach a target."""

    REACHED = "reached already"
    POSSIBLE = "possible"
    AT_BEST = "at best"
    BEYOND = "not by this plan"
    NEVER = "not reachable"


class Reach(NamedTuple):
    """The chance of reaching a target, and the step that does."""

    metric: str
    target_ns: float
    chance: Chance
    left_ns: float
    best_ns: float
    after: int | None = None


def reach_of(plan: Plan, target_ns: float, metric: str = "") -> Reach:
    """Return the best chance of a plan to reach a target."""

    def first(left_ns: Iterable[float]) -> int | None:
        return next((at for at, left in enumerate(left_ns, start=1) if left <= target_ns), None)

    after = None
    if plan.start.now_ns <= target_ns:
        chance = Chance.REACHED
    elif (plan.start.narrow_ns or plan.start.ideal_ns or 0.0) > target_ns:
        chance = Chance.NEVER
    elif after := first(step.left_ns for step in plan.steps):
        chance = Chance.POSSIBLE
    elif after := first(step.best_ns for step in plan.steps):
        chance = Chance.AT_BEST
    else:
        chance = Chance.BEYOND
    return Reach(metric, target_ns, chance, plan.left_ns, plan.best_ns, after)


def start_of(subject: Subject, settings: Mapping[str, RuleSettings]) -> Start | None:
    """Return the start of a region; None without a time."""
    table = subject.ops
    if table is None or not table.devices:
        kernels = kernels_of(subject.kernels) if subject.kernels else []
        now_ns = sum(kernel.time_ns for kernel in kernels)
        return Start(subject.region, now_ns) if kernels else None
    step = step_of(table)
    kernels_ns, gaps_ns = step_ns(step), told_gaps_ns(subject) or 0.0
    if not kernels_ns:
        return None
    kind = model_kind(table, bottleneck_of(subject, settings), subject.report)
    gaps = gaps_of(subject)
    return Start(
        subject.region,
        kernels_ns + gaps_ns,
        ideal_of_step(step),
        ideal_of_step(step, narrow=True),
        _without_model(step),
        gaps_ns,
        replayed=not isinstance(gaps, str) and gaps.replayed,
        waits=kind is ModelKind.HOST_BOUND,
    )


def starts_of_test(observation: Observation, arch: str | None) -> Iterator[Start]:
    """Yield the start of each region of a recorded test."""
    told = [one for one in observation.findings if one.stands and one.saving_ns is not None]
    groups = observation.ops if observation.ops and observation.ops.kernel_time != CALLS else None
    regions = dict.fromkeys((*(groups.regions if groups else ()), *(one.region for one in told)))
    waits = observation.model_kind == ModelKind.HOST_BOUND.value
    for region in regions:
        own = [one for one in told if one.region == region]
        steps = [one.step_ns for one in own if one.step_ns is not None]
        now = max([*steps, _time_ns(observation, metric_in(region, KERNEL_TIME)) or 0.0])
        if any(one.code in _OF_CALLS and not one.at_most for one in own):
            clock = (_time_ns(observation, metric_in(region, name)) for name in _BY_CLOCK)
            now = max(now, next(filter(None, clock), 0.0))
        if now:
            own_groups = None if groups is None else groups.of(region)
            wide, narrow = (
                _ideal_of_groups(own_groups, arch, narrow=each) for each in (False, True)
            )
            yield Start(region, now, wide, narrow, waits=waits)


def reaches_of(
    observation: Observation, findings: Sequence[Finding], plan: Plan, *, alone: bool
) -> Iterator[Reach]:
    """Yield the reach of the targets of a test for a region."""
    region = plan.start.region
    metrics = {metric_in(region, name): name for name in (*_CALL_TIMES, KERNEL_TIME)}
    if alone:
        metrics |= {name: name for name in _CALL_TIMES}
    for metric, name in metrics.items():
        now = _time_ns(observation, metric)
        target = observation.metrics[metric].limits.target if now is not None else None
        if now is None or target is None:
            continue
        start, own = replace(plan.start, now_ns=now), findings
        if name == KERNEL_TIME:
            # What kernels take knows no host, and no gaps between ops.
            start = replace(start, waits=False)
            own = [_without_gaps(one) for one in findings if not is_of_host(one.code)]
        towards = plan_of(own, start)
        scale = NANOSECONDS_IN[observation.metrics[metric].metric.unit]
        reach = reach_of(towards, target * scale, metric)
        if reach.after is not None:
            codes = [step.finding.code for step in plan.steps]
            code = towards.steps[reach.after - 1].finding.code
            reach = reach._replace(after=codes.index(code) + 1)
        yield reach


def _without_gaps(finding: Finding) -> Finding:
    gaps = finding.gaps_ns
    if not gaps or finding.saving_ns is None or finding.adds_ns is None:
        return finding
    return replace(finding, saving_ns=finding.saving_ns - gaps, adds_ns=finding.adds_ns - gaps)


def _time_ns(observation: Observation, metric: str) -> float | None:
    observed = observation.metrics.get(metric)
    if observed is None or observed.metric.unit not in NANOSECONDS_IN:
        return None
    scale = NANOSECONDS_IN[observed.metric.unit]
    samples = [one * scale for one in observed.samples if isfinite(one) and one > 0]
    return median(samples) if samples else None


def _without_model(step: OpTable) -> str:
    """Name what takes time and has no least one; "" for nothing."""
    took: dict[str, float] = defaultdict(float)
    for _, op in critical_ops(step):
        if not _has_model(op.signature) and op.signature.category is Category.MATMUL:
            took[op.signature.code] += op.kernel_ns
    return ", ".join(f"{code} ({percent(ns / step_ns(step))})" for code, ns in took.items())


def _has_model(signature: Signature) -> bool:
    if signature.category is Category.MATMUL and len(signature.inputs) > 1:
        return is_dense_matmul(signature) and prod(signature.inputs[1].shape[:-2]) == 1
    return signature.category in {Category.CONV, Category.ATTENTION} and len(signature.inputs) > 1


def ideal_of_step(step: OpTable, *, narrow: bool = False) -> float | None:
    """Return the least time of a step in ns; None if unknown."""
    board, columns = board_of(step), step.columns
    if board is None or not step.devices:
        return None
    cores = max([*(each or 0 for each in columns.cores), step.available_cores or 0])
    whole = 0.0
    for row, line in enumerate(rooflines(step)):
        if not columns.host[row] and not line.stale:
            signature = step.signatures[columns.signature[row]]
            least = _ideal_ns(board, signature, cores, narrow=narrow)
            whole += min(least, columns.kernel_ns[row])
    return whole / len(step.devices) or None


def _ideal_of_groups(groups: OpGroups | None, arch: str | None, *, narrow: bool) -> float | None:
    board = board_of_arch(arch)
    if board is None or groups is None:
        return None
    cores = max((group.cores or 0 for group in groups.groups), default=0)
    times = (
        min(least * group.count, group.total_ns)
        for group in groups.groups
        for least in (_ideal_ns(board, group.signature, cores, narrow=narrow),)
    )
    return sum(times) or None


def _ideal_ns(board: Board, signature: Signature, cores: int, *, narrow: bool) -> float:
    if not _has_model(signature):
        return 0.0
    weights, reading = signature.inputs[1], 0.0
    if signature.category in PRODUCTS and in_dram(weights):
        element = BYTES.get(weights.dtype, 0.0)
        element = min(element, BYTES["BFLOAT8_B"]) if narrow else element
        reading = prod(weights.shape) * element / board.dram_gb_s
    # Rows that are padding need not be computed.
    of = (signature.outputs or signature.inputs)[0]
    padded = prod(of.padded)
    part = min(1.0, prod(of.shape) / padded) if padded else 0.0
    flops = (work_of(signature).flops or 0.0) * part
    return max(reading, flops / (board.tflops["LoFi"] * 1000 * cores) if cores else 0.0)


class RegionPlan(Struct, frozen=True):
    """A plan of a region, or ``why_not``: the reason without one."""

    source: str
    plan: Plan | None = None
    aims: tuple[Reach, ...] = ()
    why_not: str = ""
    unanswered: int = 0
    look: str = ""

    @property
    def region(self) -> str:
        """The region, in words."""
        return (self.plan.start.region if self.plan else "") or "a step"
