"""Listings of the commands ``check`` and ``plan``."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins

from pytest_ttnn_perf.analysis.checklist.plan import Chance
from pytest_ttnn_perf.analysis.show.kernels import goal_lines
from pytest_ttnn_perf.analysis.show.ops import outside_lines, step_line
from pytest_ttnn_perf.core.finding import Family, Role, RuleOutcome
from pytest_ttnn_perf.core.observation import TELLS
from pytest_ttnn_perf.core.text import counted, duration
from pytest_ttnn_perf.report.findings import (
    by_saving,
    finding_document,
    finding_lines,
    first_step,
)
from pytest_ttnn_perf.report.tables import DROPPED, NAME, Fit, Listing, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.plan import Plan, PlanStep, Reach, RegionPlan
    from pytest_ttnn_perf.analysis.ops.regions import Outside, StepTime
    from pytest_ttnn_perf.analysis.show.kernels import Goals
    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.report.findings import Progress
    from pytest_ttnn_perf.report.tables import Block


class Checklist(Struct, frozen=True):
    """The findings about artifacts; ``doubt`` is why there are no more.

    ``goals`` are those of kernels, in place of the progress of a model.
    """

    findings: tuple[Finding, ...]
    regions: tuple[StepTime, ...] = ()
    outside: Outside | None = None
    bottleneck: str | None = None
    progress: Progress | None = None
    doubt: str | None = None
    goals: tuple[Goals, ...] = ()


_FIELDS: Final = (
    *("code", "name", "severity", "outcome", "reason", "value", "limit", "unit", "fix", "waived"),
    *("region", "saving_ns", "adds_ns", "arithmetic", "quiet", "step_ns", "at_most"),
    "covered_by",
)


def checklist_listing(report: Checklist, *, hide_quiet: bool = True) -> Listing:
    """Lay findings out region by region, largest savings first."""
    findings = report.findings
    found = [finding for finding in findings if finding.outcome is RuleOutcome.FOUND]
    shown_ones = [finding for finding in found if not (hide_quiet and finding.quiet)]
    # Doubts about all numbers come before them.
    first = [one for one in shown_ones if Family.VALIDITY.has(one.code) or not report.regions]
    lines = list(_found_lines(first))
    for time in report.regions:
        lines += ["", step_line(time)] if lines else [step_line(time)]
        own = [one for one in shown_ones if one.region == time.region and one not in first]
        lines += _found_lines(own)
    regions = {time.region for time in report.regions}
    others = [one for one in shown_ones if one.region not in regions and one not in first]
    lines += _found_lines(others)
    lines += outside_lines(report.outside)
    lines += [""] if lines else []
    lines += _hidden_lines([one for one in found if one not in shown_ones])
    if report.doubt:
        lines += [report.doubt]
    else:
        lines += [*_quiet(findings, hide=hide_quiet), ""]
        lines += [f"bottleneck: {region}" for region in (report.bottleneck or "").splitlines()]
        if report.goals:
            lines += goal_lines(report.goals)
        elif report.progress:
            lines += _progress_lines(report.progress)
    documents = [finding_document(finding) for finding in findings]
    rows = tuple(tuple(each[name] for name in _FIELDS) for each in documents)
    progress = report.progress and {
        "steps": to_builtins(report.progress.all),
        "model_kind": to_builtins(report.progress.kind),
        "first": to_builtins(report.progress.first),
        "firsts": to_builtins(report.progress.firsts),
        "invalid": report.progress.invalid,
    }
    document = {
        "rules": documents,
        "doubt": report.doubt,
        "bottleneck": report.bottleneck,
        "progress": progress,
        "regions": to_builtins(report.regions),
        "outside": to_builtins(report.outside),
        "goals": to_builtins(report.goals, enc_hook=lambda state: state.value),
    }
    return Listing((*lines, _count_line(findings)), document, _FIELDS, rows)


def _found_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in by_saving(findings):
        yield from finding_lines(finding, numbered=True)


def _progress_lines(progress: Progress) -> Iterator[str]:
    yield "optimization progress:"
    for step in progress.all:
        state = ": ".join(filter(None, (step.state.value, ", ".join(step.open_rules))))
        if step.unmeasured:
            rules = counted(step.unmeasured, "rule")
            state = f"{step.state.value}, as far as known: {rules} not measured"
        yield f"  {step.name:<20} {state}"
    yield from first_step(progress)


def _hidden_lines(findings: Sequence[Finding]) -> Iterator[str]:
    # Those that another finding covers are named there.
    alone = [finding for finding in findings if finding.covered_by is None]
    for known, why in ((True, "too little to save"), (False, "no saving known")):
        codes = sorted({one.code for one in alone if (one.saving_ns is not None) is known})
        if codes:
            yield f"not shown, {why}: {', '.join(codes)}; --all shows them"


def _count_line(findings: Iterable[Finding]) -> str:
    outcomes = Counter(finding.outcome for finding in _knowing_most(findings).values())
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome.value}" for outcome in RuleOutcome if outcomes[outcome]
    )
    return f"{counted(sum(outcomes.values()), 'rule')}: {counts}"


_ANSWERLESS: Final = (RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE)


def _quiet(findings: Iterable[Finding], *, hide: bool) -> Iterator[str]:
    """Yield the reasons of rules without an answer, or their number."""
    most = _knowing_most(findings)
    if hide:
        unknown = sum(one.outcome is RuleOutcome.NOT_MEASURED for one in most.values())
        if unknown:
            rules = counted(unknown, "rule")
            yield f"{rules} could not be answered from this; check --all says what they need"
        return
    for outcome in (RuleOutcome.CLEAN, *_ANSWERLESS):
        reasons: dict[str, list[str]] = defaultdict(list)
        for code in sorted(most):
            if most[code].outcome is outcome and (most[code].reason or outcome in _ANSWERLESS):
                reasons[most[code].reason or ""].append(code)
        for reason, codes in reasons.items():
            yield f"{outcome.value} {', '.join(codes)}: {reason}"


def _knowing_most(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return for each rule the finding that knows most."""
    ordered = sorted(findings, key=lambda finding: TELLS.index(finding.outcome))
    return {finding.code: finding for finding in ordered}


#: Said once, under all plans.
_NOTE: Final = (
    "Savings are estimates, of changes that can be made: measure each with ttnn-perf try."
)
_HEADINGS: Final = ("step", "do", "saves", "left")
_RIGHT: Final = frozenset({0, 2, 3})
#: In a narrow terminal, what is left after each step goes first.
_FITS: Final = [Fit(), NAME, Fit(), DROPPED[0]]
_PLAN_FIELDS: Final = (
    *("source", "region", "step", "code", "name", "saves_us", "alone_us", "left_us", "at_most"),
)
#: What differs by less is the same to a reader.
_SAME: Final = 1.01


def plan_listing(planned: Sequence[RegionPlan]) -> Listing:
    """Lay plans out, the most important first, missing ones last."""
    lines: list[Block] = []
    rows: list[tuple[object, ...]] = []
    above = ""
    for one in planned:
        if one.plan is None:
            continue
        lines += [""] if lines else []
        lines += [one.source] if one.source and one.source != above else []
        above = one.source
        lines += _plan_lines(one, one.plan)
        for number, step in enumerate(one.plan.steps, start=1):
            which = (one.source, one.plan.start.region, number)
            rows.append((*which, step.finding.code, step.finding.name, *_savings(step).values()))
    missing = list(_missing_lines(planned))
    lines += ["", *missing] if lines and missing else missing
    lines += ["", _NOTE] if rows else []
    document = {"plans": [_document(one) for one in planned], "note": _NOTE}
    return Listing(tuple(lines), document, _PLAN_FIELDS, tuple(rows))


def _savings(step: PlanStep) -> dict[str, object]:
    return {
        "saves_us": _us(step.saves_ns),
        "alone_us": _us(step.alone_ns),
        "left_us": _us(step.left_ns),
        "at_most": step.finding.at_most,
    }


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1000, 3)


def _plan_lines(one: RegionPlan, plan: Plan) -> Iterator[Block]:
    yield f"{one.region}: {_now(plan)}"
    if not plan.steps:
        yield "    no finding says that it would save anything"
    else:
        yield Table(_HEADINGS, [Row(cells) for cells in _table_cells(plan)], _RIGHT, _FITS)
        best = f", at best {duration(plan.best_ns)}" if plan.best_ns < plan.left_ns else ""
        yield f"left after all: {duration(plan.left_ns)}{best}"
        yield from _advice_lines(plan)
    yield from _notes(one, plan)


def _now(plan: Plan) -> str:
    start = plan.start
    most = "" if start.replayed else "at most "
    gaps = f", {most}{duration(start.gaps_ns)} of it gaps" if start.gaps_ns else ""
    least = "not known" if start.ideal_ns is None else duration(start.ideal_ns)
    without = f", no model for {start.no_model}" if start.no_model else ""
    return f"{duration(start.now_ns)} now{gaps}; roofline {least}{without}"


def _table_cells(plan: Plan) -> Iterator[tuple[str, ...]]:
    time = partial(duration, beside=plan.start.now_ns)
    for number, step in enumerate(plan.steps, start=1):
        finding = step.finding
        saves = f"{'at most ' if finding.at_most else ''}{time(step.saves_ns)}"
        yield str(number), f"{finding.code} {finding.name}", saves, time(step.left_ns)
    if len(plan.steps) > 1:
        yield "all", "", time(plan.start.now_ns - plan.left_ns), time(plan.left_ns)


def _advice_lines(plan: Plan) -> Iterator[str]:
    for number, step in enumerate(plan.steps, start=1):
        finding, alone = step.finding, ""
        if step.alone_ns > step.saves_ns * _SAME:
            alone = f" (alone it would save {duration(step.alone_ns)})"
        yield f"{number}. {finding.code}: {finding.fix or finding.reason}{alone}"


def _notes(one: RegionPlan, plan: Plan) -> Iterator[str]:
    def named(findings: Iterable[Finding]) -> str:
        return ", ".join(dict.fromkeys(f"{each.code} {each.name}" for each in findings))

    yield from (_reach_line(reach, plan) for reach in one.aims)
    if plan.stopped:
        yield "findings add up to more than that: the plan stops at the roofline"
    if plan.start.waits and len(plan.steps) > 1:
        yield "the host holds this up: what later steps save shows once step 1 is done"
    untold = [each for each in plan.untold if not Role.NAMES_UNEXPLAINED.has(each.code)]
    if untold:
        yield f"no saving known: {named(untold)}; make the change and measure it: ttnn-perf try"
    yield from (f"{each.code}: {each.reason}" for each in plan.untold if each not in untold)
    covered = [f"{each.code} (see {each.covered_by})" for each in plan.little if each.covered_by]
    if covered:
        yield f"in part the same time: {', '.join(covered)}; plan again once that is done"
    little = [each.code for each in plan.little if not each.covered_by]
    if little:
        yield f"too little to add: {', '.join(little)}"
    if plan.waived:
        yield f"waived: {named(plan.waived)}"
    if one.unanswered and not plan.steps:
        rules = counted(one.unanswered, "rule")
        yield f"{rules} could not be answered; what they need: {one.look}"


def _reach_line(reach: Reach, plan: Plan) -> str:
    target = f"target {duration(reach.target_ns)}"
    if reach.metric:
        target += f" of {reach.metric}"
    match reach.chance:
        case Chance.REACHED:
            return f"{target}: reached already"
        case Chance.NEVER:
            least = duration(plan.start.ideal_ns or 0.0)
            # Narrower weights, or more devices, may get there, and no plan is sure of either.
            ruled = "not reachable on these devices with weights of bfloat8_b"
            return f"{target}: {ruled}: the roofline is {least}"
        case Chance.BEYOND:
            at_best = " at best" if reach.best_ns < reach.left_ns else ""
            leaves = f"{duration(reach.best_ns)}{at_best}"
            return f"{target}: not reachable by this plan, which leaves {leaves}"
        case Chance.POSSIBLE:
            how = "possible: if all savings are as estimated"
        case Chance.AT_BEST:
            how = "at best: if steps save at most as much in full"
    return f"{target}: reachable after step {reach.after} ({how})"


def _missing_lines(planned: Iterable[RegionPlan]) -> Iterator[str]:
    """Say what has no plan, all of one reason together."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in planned:
        if one.plan is None:
            reasons[one.why_not].append(one.source)
    for why, sources in reasons.items():
        of = sources[0] if len(sources) == 1 else counted(len(sources), "test")
        yield f"no plan{f' of {of}' if of else ''}: {why}"


def _document(one: RegionPlan) -> dict[str, Any]:
    plan = one.plan
    if plan is None:
        return {"source": one.source, "why_not": one.why_not, "steps": []}

    def codes(findings: Iterable[Finding]) -> list[str]:
        return sorted({finding.code for finding in findings})

    start = plan.start
    return {
        "source": one.source,
        "region": start.region,
        "now_us": _us(start.now_ns),
        "gaps_us": _us(start.gaps_ns),
        "roofline_us": _us(start.ideal_ns),
        "no_model": start.no_model,
        "host_bound": start.waits,
        "saves_us": _us(start.now_ns - plan.left_ns),
        "left_us": _us(plan.left_ns),
        "left_at_best_us": _us(plan.best_ns),
        "stops_at_roofline": plan.stopped,
        "targets": [
            {
                "metric": reach.metric,
                "target_us": _us(reach.target_ns),
                "chance": reach.chance.value,
                "after_step": reach.after,
            }
            for reach in one.aims
        ],
        "steps": [
            {
                "code": step.finding.code,
                "name": step.finding.name,
                "do": step.finding.fix or step.finding.reason,
                **_savings(step),
            }
            for step in plan.steps
        ],
        "no_saving_known": codes(plan.untold),
        "too_little": codes(plan.little),
        "waived": codes(plan.waived),
    }
