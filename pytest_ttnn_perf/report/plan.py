"""Plans: what to do first, what it saves, what is left, and whether a target is in reach."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted, shortened
from pytest_ttnn_perf.analysis.checklist.plan import Chance
from pytest_ttnn_perf.report.layout import DROPPED, NAME, Fit, Row, Table
from pytest_ttnn_perf.report.markdown import code as in_code
from pytest_ttnn_perf.report.markdown import heading_rows, prose, spans, table_row
from pytest_ttnn_perf.report.numbers import Listing, json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.plan import Plan, Reach
    from pytest_ttnn_perf.records.finding import Finding
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of one region of a capture, or of a test; ``why_not`` says why there is none.

    ``source`` is the file or the test, "" where the command names nothing else. ``unanswered`` is
    how many rules could not tell, ``look`` the command that says what they need.
    """

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


#: Said once, under all plans.
_NOTE: Final = (
    "Savings are estimates, of changes that can be made: measure each with ttnn-perf try."
)
_HEADINGS: Final = ("step", "do", "saves", "left")
_RIGHT: Final = frozenset({0, 2, 3})
_COLUMNS: Final = (
    *("source", "region", "step", "code", "name", "saves_us", "alone_us", "left_us", "at_most"),
)


def plan_listing(planned: Sequence[Planned]) -> Listing:
    """Lay plans out, the one that matters first; those that cannot be made last."""
    lines: list[Block] = []
    made = [one for one in planned if one.plan is not None]
    above = ""
    for one in made:
        lines += [""] if lines else []
        if one.source and one.source != above:
            lines.append(one.source)
        above = one.source
        lines += _plan_lines(one)
    missing = list(_missing_lines(planned))
    lines += ["", *missing] if lines and missing else missing
    if any(one.plan and one.plan.steps for one in made):
        lines += ["", _NOTE]
    rows = tuple(
        (
            *(one.source, one.plan.start.region, number, step.finding.code, step.finding.name),
            *(_us(step.saves_ns), _us(step.alone_ns), _us(step.left_ns), step.finding.at_most),
        )
        for one in made
        if one.plan is not None
        for number, step in enumerate(one.plan.steps, start=1)
    )
    return Listing(tuple(lines), bounded_document(planned), _COLUMNS, rows)


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1000, 3)


def _plan_lines(one: Planned) -> Iterator[Block]:
    plan = one.plan
    assert plan is not None
    yield f"{one.region}: {_now(plan)}"
    if not plan.steps:
        yield "    no finding says that it would save anything"
    else:
        yield Table(_HEADINGS, [Row(cells) for cells in _table_cells(plan)], _RIGHT, _FITS)
        best = f", at best {_time(plan.best_ns)}" if plan.best_ns < plan.left_ns else ""
        yield f"left after all: {_time(plan.left_ns)}{best}"
        yield from _advice_lines(plan)
    yield from _notes(one)


#: In a narrow terminal, what is left after each step goes first.
_FITS: Final = [Fit(), NAME, Fit(), DROPPED[0]]


def _now(plan: Plan) -> str:
    """Say what a step takes now, and the least that it can take."""
    start = plan.start
    most = "" if start.replayed else "at most "
    gaps = f", {most}{_time(start.gaps_ns)} of it gaps" if start.gaps_ns else ""
    least = "not known" if start.ideal_ns is None else _time(start.ideal_ns)
    return f"{_time(start.now_ns)} now{gaps}; roofline {least}"


def _table_cells(plan: Plan) -> Iterator[tuple[str, ...]]:
    for number, step in enumerate(plan.steps, start=1):
        finding = step.finding
        saves = f"{'at most ' if finding.at_most else ''}{_time(step.saves_ns)}"
        yield str(number), f"{finding.code} {finding.name}", saves, _time(step.left_ns)
    if len(plan.steps) > 1:
        yield "all", "", _time(plan.start.now_ns - plan.left_ns), _time(plan.left_ns)


def _time(nanoseconds: float) -> str:
    """Return microseconds; of thousands nobody reads the tenth.

    >>> _time(61_340), _time(1_234_567)
    ('61.3 µs', '1,235 µs')
    """
    value = nanoseconds / 1000
    return f"{value:,.0f} µs" if value >= 1000 else f"{value:.1f} µs"


#: What differs by less is the same to a reader.
_SAME: Final = 1.01


def _advice_lines(plan: Plan) -> Iterator[str]:
    """Say what each step is, and what it would save without those before it."""
    for number, step in enumerate(plan.steps, start=1):
        finding, alone = step.finding, ""
        if step.alone_ns > step.saves_ns * _SAME:
            alone = f" (alone it would save {_time(step.alone_ns)})"
        yield f"{number}. {finding.code}: {finding.fix or finding.reason}{alone}"


#: Says what no rule explains: there is no change to make.
_UNEXPLAINED: Final = "TTP315"


def _notes(one: Planned) -> Iterator[str]:
    plan = one.plan
    assert plan is not None
    yield from (_reach_line(reach, plan) for reach in one.aims)
    if plan.stopped:
        yield "findings add up to more than that: the plan stops at the roofline"
    if plan.start.waits and len(plan.steps) > 1:
        yield "the host holds this up: what later steps save shows once step 1 is done"
    untold = [one for one in plan.untold if one.code != _UNEXPLAINED]
    if untold:
        yield f"no saving known: {_named(untold)}; make the change and measure it: ttnn-perf try"
    yield from (f"{one.code}: {one.reason}" for one in plan.untold if one.code == _UNEXPLAINED)
    covered = [f"{each.code} (see {each.covered_by})" for each in plan.little if each.covered_by]
    if covered:
        yield f"in part the same time: {', '.join(covered)}; plan again once that is done"
    little = [each.code for each in plan.little if not each.covered_by]
    if little:
        yield f"too little to add: {', '.join(little)}"
    if plan.waived:
        yield f"waived: {_named(plan.waived)}"
    if one.unanswered and not plan.steps:
        rules = counted(one.unanswered, "rule")
        yield f"{rules} could not be answered; what they need: {one.look}"


def _named(findings: Iterable[Finding]) -> str:
    return ", ".join(dict.fromkeys(f"{one.code} {one.name}" for one in findings))


def _reach_line(reach: Reach, plan: Plan) -> str:
    """Say whether a target is in reach."""
    target = f"target {_with_unit(reach.target_ns)}"
    if reach.metric:
        target += f" of {reach.metric}"
    match reach.chance:
        case Chance.REACHED:
            return f"{target}: reached already"
        case Chance.NEVER:
            least = _with_unit(plan.start.ideal_ns or 0.0)
            # Narrower weights, or more devices, may get there, and no plan is sure of either.
            ruled = "not reachable on these devices with weights of bfloat8_b"
            return f"{target}: {ruled}: the roofline is {least}"
        case Chance.BEYOND:
            at_best = " at best" if reach.best_ns < reach.left_ns else ""
            leaves = f"{_with_unit(reach.best_ns)}{at_best}"
            return f"{target}: not reachable by this plan, which leaves {leaves}"
        case Chance.POSSIBLE:
            how = "possible: if all savings are as estimated"
        case Chance.AT_BEST:
            how = "at best: if steps save at most as much in full"
    return f"{target}: reachable after step {reach.after} ({how})"


def _with_unit(nanoseconds: float) -> str:
    """Return a time as targets are set.

    >>> _with_unit(12_000_000), _with_unit(350_000)
    ('12.00 ms', '350.0 µs')
    """
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:,.2f} ms"
    return f"{nanoseconds / 1e3:.1f} µs"


#: How many tests of one reason are named; the others are counted.
_MOST_NAMED: Final = 3


def _missing_lines(planned: Iterable[Planned]) -> Iterator[str]:
    """Say what has no plan, all of one reason together."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in planned:
        if one.plan is None:
            reasons[one.why_not].append(one.source)
    for why, sources in reasons.items():
        named = [source for source in sources if source]
        more = len(named) - _MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        of = f" of {', '.join(named[:_MOST_NAMED])}{rest}" if named else ""
        yield f"no plan{of}: {why}"


#: What an answer may have, so that a program, or an agent, can read it whole.
MOST_BYTES: Final = 8_000
#: What a name and a sentence, which others may have written, may have of it.
_NAME_BYTES: Final = 120
_TEXT_BYTES: Final = 240
#: More do not fit, however short they are.
_MOST_PLANS: Final = 40
_MOST_CODES: Final = 20
#: So many steps stay of each plan while there are plans to leave out.
_FEW_STEPS: Final = 3


def bounded_document(planned: Sequence[Planned], *, most_bytes: int = MOST_BYTES) -> object:
    """Return plans as plain JSON of bounded size; ``cut`` says what was left out of it.

    Steps go first, the last ones of the longest plan; then plans, the last ones.
    """
    plans = [_document(one) for one in planned[:_MOST_PLANS]]
    beyond = [one.plan for one in planned[_MOST_PLANS:]]
    cut = {"plans": len(beyond), "steps": sum(len(plan.steps) for plan in beyond if plan)}
    document = {"plans": plans, "cut": cut, "note": _NOTE}
    while len(json_text(document).encode()) > most_bytes:
        steps = max((plan["steps"] for plan in plans), key=len)
        if len(steps) > (_FEW_STEPS if len(plans) > 1 else 1):
            steps.pop()
            cut["steps"] += 1
        elif len(plans) > 1:
            cut["steps"] += len(plans.pop()["steps"])
            cut["plans"] += 1
        else:  # what is left is small: one step, and texts that are bounded
            break
    return document


def _brief(text: str, most_bytes: int) -> str:
    """Return a text that takes at most so much of a document, whatever is in it."""
    most = most_bytes
    while len(json_text(short := shortened(text, most))) > most_bytes:
        most -= 6  # what a character takes that is spelt
    return short


def _document(one: Planned) -> dict[str, Any]:
    plan = one.plan
    if plan is None:
        why = _brief(one.why_not, _TEXT_BYTES)
        return {"source": _brief(one.source, _NAME_BYTES), "why_not": why, "steps": []}
    start = plan.start
    return {
        "source": _brief(one.source, _NAME_BYTES),
        "region": _brief(start.region, _NAME_BYTES),
        "now_us": _us(start.now_ns),
        "gaps_us": _us(start.gaps_ns),
        "roofline_us": _us(start.ideal_ns),
        "host_bound": start.waits,
        "saves_us": _us(start.now_ns - plan.left_ns),
        "left_us": _us(plan.left_ns),
        "left_at_best_us": _us(plan.best_ns),
        "stops_at_roofline": plan.stopped,
        "targets": [
            {
                "metric": _brief(reach.metric, _NAME_BYTES),
                "target_us": _us(reach.target_ns),
                "chance": reach.chance.value,
                "after_step": reach.after,
            }
            for reach in one.aims
        ],
        "steps": [
            {
                "code": step.finding.code,
                "name": _brief(step.finding.name, _NAME_BYTES),
                "do": _brief(step.finding.fix or step.finding.reason or "", _TEXT_BYTES),
                "saves_us": _us(step.saves_ns),
                "alone_us": _us(step.alone_ns),
                "left_us": _us(step.left_ns),
                "at_most": step.finding.at_most,
            }
            for step in plan.steps
        ],
        "no_saving_known": _codes(plan.untold),
        "too_little": _codes(plan.little),
        "waived": _codes(plan.waived),
    }


def _codes(findings: Iterable[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings})[:_MOST_CODES]


def plan_markdown(planned: Sequence[Planned]) -> str:
    """Return plans as a comment on a pull request has them."""
    parts = []
    for one in planned:
        if one.plan is None:
            continue
        source = f" of {in_code(one.source)}" if one.source else ""
        lines = [f"### Plan for {prose(one.region)}{source}\n\n{prose(_now(one.plan))}\n"]
        if one.plan.steps:
            rows = (table_row([prose(cell) for cell in cells]) for cells in _table_cells(one.plan))
            lines += ["\n", heading_rows(_HEADINGS, right=_RIGHT), *rows]
        lines.append("\n")
        lines += (f"{spans(line)}\n" for line in _advice_lines(one.plan))
        notes = [f"- {spans(line)}\n" for line in _notes(one)]
        lines += ["\n", *notes] if notes and one.plan.steps else notes
        parts.append("".join(lines))
    missing = "".join(f"- {prose(line)}\n" for line in _missing_lines(planned))
    parts += [missing] if missing else []
    return "\n".join([*parts, f"{spans(_NOTE)}\n"])
