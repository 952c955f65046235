"""Findings and progress of the checklist."""

from __future__ import annotations

from collections import Counter, defaultdict
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins

from pytest_ttnn_perf.core.finding import (
    OURS,
    TOO_SMALL,
    Family,
    Role,
    RuleOutcome,
    Severity,
    family_of,
)
from pytest_ttnn_perf.core.text import (
    TIME_UNITS,
    counted,
    digits,
    duration,
    inert,
    percent,
    size,
    unit_filled_by,
    unit_for,
)
from pytest_ttnn_perf.report.tables import (
    Fit,
    Line,
    Row,
    Table,
    cut_end,
    format_fraction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Finding, UnansweredRules
    from pytest_ttnn_perf.core.observation import JudgedTest


class State(Enum):
    """The state of an optimization step."""

    DONE = "done"
    OPEN = "open"
    SMALL = "open, too small here to matter"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


class ModelKind(Enum):
    """Kinds of models, which decide the step that pays most."""

    HOST_BOUND = "host-bound model"
    LLM = "LLM"
    CNN = "CNN"
    MEMORY_BOUND = "memory-bound model"


class Step(Struct, frozen=True):
    """A step; ``open_rules`` keep it open, ``unmeasured`` ones had no answer."""

    name: str
    state: State
    open_rules: tuple[str, ...] = ()
    unmeasured: int = 0


class First(Struct, frozen=True):
    """The finding to begin with, of a step of its region."""

    code: str
    name: str
    region: str = ""
    saving_ns: float | None = None
    step_ns: float | None = None
    at_most: bool = False


class Progress(Struct, frozen=True):
    """The optimization steps of a model, in the order of their numbers."""

    baseline: Step
    steps: tuple[Step, ...]
    pcc: Step
    #: None where the ops do not show it.
    kind: ModelKind | None = None
    #: What to begin with in each region, the largest part of its step first.
    firsts: tuple[First, ...] = ()
    #: Rules that say that the numbers cannot be trusted, which comes before any step.
    invalid: tuple[str, ...] = ()

    @property
    def first(self) -> First | None:
        return next(iter(self.firsts), None)

    @property
    def all(self) -> tuple[Step, ...]:
        return (self.baseline, *self.steps, self.pcc)


_TITLES: Final = (
    *("baseline", "1 formats", "2 layouts", "3 memory", "4 trace", "5 queues", "6 convs"),
    *("7 devices", "PCC"),
)


def open_steps(progress: Progress) -> tuple[str, str]:
    """Return the number of done steps, and the names of open ones."""
    named = zip(_TITLES, progress.all, strict=True)
    done = sum(step.state is State.DONE for step in progress.all)
    names = (name for name, step in named if step.state is State.OPEN)
    return f"{done} of {len(progress.all)}", f"OPEN: {', '.join(names)}"


def first_step(progress: Progress) -> Iterator[str]:
    if progress.invalid:
        yield f"first: validity, {', '.join(progress.invalid)}: it puts everything else in doubt"
        return
    for first in progress.firsts:
        worth = ""
        if first.saving_ns is not None:
            worth = f", {'at most' if first.at_most else 'up to'} {duration(first.saving_ns)}"
            # Else it is of a wall time, of which the step is a part.
            if first.step_ns is not None and first.step_ns >= first.saving_ns:
                worth += f" of {duration(first.step_ns)}"
        where = f" in {first.region}" if first.region else ""
        yield f"first: {first.code} {first.name}{where}{worth}"


def by_saving(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(
        findings,
        key=lambda one: (
            not one.fails,
            one.saving_ns is None,
            one.at_most,
            -(one.saving_ns or 0.0),
            one.code,
        ),
    )


def finding_lines(finding: Finding, *, numbered: bool = False) -> Iterator[str]:
    """Lay one finding out; ops are ``numbered`` as ``ttnn-perf show --ops`` does."""
    yield title(finding)
    yield from evidence_lines(finding, numbered=numbered)
    yield from saving_lines(finding)
    yield from advice_lines(finding)


def saving_lines(finding: Finding) -> Iterator[str]:
    if finding.saving_ns is not None:
        saving = duration(finding.saving_ns)
        adds = duration(finding.added_ns)
        most = "at most " if finding.at_most else ""
        beside = "" if adds == saving else f", {adds} of it not already counted above"
        how = f": {finding.arithmetic}" if finding.arithmetic else ""
        # The log of a kernel has programs, and no steps.
        of = "" if Family.KERNELS.has(finding.code) else " of a step"
        yield f"    would save {most}{saving}{of}{beside}{how}"
    if finding.also:
        name = "names" if len(finding.also) == 1 else "name"
        yield f"    also: {', '.join(finding.also)} {name} the same ops"


def title(finding: Finding) -> str:
    name = f"{finding.code} {finding.name} ({finding.severity.value})"
    waived = "" if finding.waived is None else f"; waived: {finding.waived}"
    limit = "" if finding.limit is None else f" (limit: {shown(finding.limit, finding.unit)})"
    return f"{name}: {finding.reason}{limit}{waived}"


#: How many ops are listed by their numbers.
_MOST_NUMBERS: Final = 3


def evidence_lines(finding: Finding, *, numbered: bool = False) -> Iterator[str]:
    """Yield the places of a finding, unless the reason says them."""
    for evidence in finding.evidence:
        if evidence.subject == finding.reason:
            continue
        value = ""
        if evidence.value is not None:
            share = "" if evidence.share is None else f", {percent(evidence.share)}"
            value = f": {shown(evidence.value, evidence.unit)}{share}"
        listed = [f"#{number}" for number in evidence.ops[:_MOST_NUMBERS]]
        more = ["…"] if len(evidence.ops) > _MOST_NUMBERS else []
        ids = f" ({', '.join(listed + more)})" if numbered and listed else ""
        yield f"    {evidence.subject}{value}{ids}"


def advice_lines(finding: Finding) -> Iterator[str]:
    if finding.fix and finding.waived is None:
        yield f"    fix: {finding.fix}"
        if finding.code.startswith(OURS):  # rules of other plugins have no page here
            yield f"    see: ttnn-perf rules {finding.code}"


def finding_document(finding: Finding) -> dict[str, object]:
    plain = {name: getattr(finding, name) for name in finding.__struct_fields__}
    named = {"severity": finding.severity.value, "outcome": finding.outcome.value}
    return plain | named | {"evidence": tuple(map(to_builtins, finding.evidence))}


def shown(value: float, unit: str) -> str:
    """Return a number in its unit; fractions "of" something in per cent."""
    if unit.startswith(("of ", "above ")):
        return f"{format_fraction(value)} {unit}"
    if unit == "ns":
        return duration(value)
    if unit in {"B", "bytes"}:
        return size(value)
    if unit.startswith("B "):
        return f"{size(value)} {unit.removeprefix('B ')}"
    return f"{value:,.4g} {unit_for(value, unit)}".strip()


#: The heaviest first; information comes last, without evidence and advice.
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)
#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 3


def findings_lines(
    tests: Sequence[JudgedTest], *, told: frozenset[str] = frozenset(), verbose: bool = False
) -> Iterator[Line | Table]:
    """Lay out findings, a line for each rule unless ``verbose``."""
    shared = _by_finding(tests, told)
    if not verbose:
        yield from _short_lines(shared)
        return
    lines = [
        Line(f"{judged.observation.test}: bottleneck: {clause}")
        for judged in tests
        for clause in (judged.observation.bottleneck or "").splitlines()
    ]
    advised: set[str] = set()
    for severity in _ORDER:
        for finding, names in shared.items():
            if finding.severity is severity:
                bad = finding.fails
                lines += [Line(text, bad=bad) for text in _finding(finding, names, advised)]
    if lines:
        yield Line("optimization checklist")
        yield from lines
        yield Line("")


def _short_lines(shared: Mapping[Finding, Sequence[str]]) -> Iterator[Line | Table]:
    rules: dict[str, list[Finding]] = {}
    for finding in by_saving(shared):
        rules.setdefault(finding.code, []).append(finding)
    if not rules:
        return
    names = list(dict.fromkeys(name for own in shared.values() for name in own))
    where = names[0] if len(names) == 1 else counted(len(names), "test")
    yield Line(f"checklist: {counted(len(rules), 'finding')} in {where} (-v: where, how to fix)")
    rows = []
    for found in sorted(rules.values(), key=lambda found: _ORDER.index(found[0].severity)):
        first = found[0]
        of = list(dict.fromkeys(name for finding in found for name in shared[finding]))
        many = f"{len(of)} tests: " if len(of) > 1 else ""
        saves = "" if first.saving_ns is None else f"saves {saving(first)}"
        rows.append((f"  {first.code} {first.name}", saves, f"{many}{short_reason(first)}"))
    yield Table(
        ("",) * 3,
        [Row([*map(inert, cells)]) for cells in rows],
        fits=(Fit(), Fit(), Fit(least=13, drop=0)),
    )
    yield Line("")


def saving(finding: Finding) -> str:
    """Return the saving next to its step: ``146 of 482 µs``."""
    if finding.saving_ns is None:
        return ""
    # What is saved of a wall time may be more than a step, which is a part of that.
    if finding.step_ns is None or finding.step_ns < finding.saving_ns:
        return duration(finding.saving_ns)
    unit, factor = unit_filled_by(finding.step_ns, TIME_UNITS)
    most = "at most " if finding.at_most else ""
    saved, step = (digits(ns / factor) for ns in (finding.saving_ns, finding.step_ns))
    return f"{most}{saved} of {step} {unit}"


#: A reason that is longer is cut: the whole is shown with -v.
_LONGEST_REASON: Final = 60


def short_reason(finding: Finding) -> str:
    reason = finding.reason or ""
    waived = "" if finding.waived is None else "waived: "
    return waived + cut_end(reason, _LONGEST_REASON)


def findings_count(tests: Sequence[JudgedTest]) -> str:
    found = Counter(
        finding.severity for judged in tests for finding in _found(judged) if finding.stands
    )
    counts = ", ".join(
        counted(found[severity], severity.value) for severity in _ORDER[:2] if found[severity]
    )
    return counts and f"checklist: {counts}"


def _by_finding(tests: Sequence[JudgedTest], told: frozenset[str]) -> dict[Finding, list[str]]:
    found: dict[Finding, list[str]] = {}
    machine: dict[tuple[str, str | None], Finding] = {}
    for judged in tests:
        test = judged.observation.test
        for finding in _found(judged):
            same = finding
            if Role.ABOUT_MACHINE.has(finding.code):
                same = machine.setdefault((finding.code, finding.waived), finding)
            if not (finding.fails and test in told):
                found.setdefault(same, []).append(test)
    return found


def _found(judged: JudgedTest) -> Iterator[Finding]:
    for finding in judged.findings:
        if finding.outcome is RuleOutcome.FOUND and not finding.quiet:
            yield finding


def _finding(finding: Finding, tests: Sequence[str], advised: set[str]) -> Iterator[str]:
    where = tests[0] if len(tests) == 1 else counted(len(tests), "test")
    region = f" {finding.region}" if finding.region else ""
    yield f"{where}{region}: {title(finding)}"
    if len(tests) > 1:
        more = len(tests) - _MOST_TESTS
        yield f"    {', '.join(tests[:_MOST_TESTS])}{f' and {more} more' if more > 0 else ''}"
    if finding.waived is not None or finding.severity is Severity.INFO:
        return
    yield from evidence_lines(finding)
    yield from saving_lines(finding)
    if finding.code not in advised:
        advised.add(finding.code)
        yield from advice_lines(finding)


_STEPS: Final = tuple(family for family in Family if family.is_step)
#: Where a family of rules is about more than its step.
_NAMES: Final = {Family.MEMORY: "memory and sharding", Family.QUEUES: "command queues"}
#: Unexplained time of more than that part of a step is most of it.
_MOST: Final = 0.5
#: What saves that part of the largest saving saves about as much: estimates are not exact.
_AS_MUCH: Final = 0.95
#: Which steps pay first, by kind of model; the others follow in their order.
_FOCUS: Final[Mapping[ModelKind, tuple[Family, ...]]] = {
    ModelKind.HOST_BOUND: (Family.HOST, Family.QUEUES),
    ModelKind.LLM: (Family.FORMATS, Family.HOST, Family.QUEUES),
    ModelKind.CNN: (Family.MEMORY, Family.CONVOLUTIONS),
    ModelKind.MEMORY_BOUND: (Family.MEMORY, Family.FORMATS),
}
_WITHOUT_ANSWER: Final = {
    RuleOutcome.NOT_MEASURED: State.NOT_MEASURED,
    RuleOutcome.NOT_APPLICABLE: State.NOT_APPLICABLE,
}
#: What a rule can say of its step, the most last.
_SAYS: Final = (None, State.NOT_APPLICABLE, State.NOT_MEASURED, State.DONE, State.SMALL, State.OPEN)


def progress_of(
    findings: Iterable[Finding],
    *,
    unanswered: Iterable[UnansweredRules] = (),
    has_baseline: bool | None,
    kind: ModelKind | None = None,
) -> Progress:
    """Return the progress of a model; ``has_baseline`` None is unknown."""
    listed = tuple(findings)
    told: list[tuple[str, State | None]]
    told = [(code, _WITHOUT_ANSWER[each.outcome]) for each in unanswered for code in each.codes]
    told += [(finding.code, _state(finding)) for finding in listed]
    # Of a rule that was asked of several regions, the one where it says most counts.
    states = dict(sorted(told, key=lambda item: _SAYS.index(item[1])))
    states = {code: states[code] for code in sorted(states)}
    by_step: dict[Family, dict[str, State | None]] = defaultdict(dict)
    for code, state in states.items():
        by_step[family_of(code)][code] = state
    steps = {each: _step(_NAMES.get(each, each.value), by_step[each]) for each in _STEPS}
    for one in listed:
        if _leaves_most(one) and steps[one.family].state is State.DONE:
            steps[one.family] = Step(steps[one.family].name, State.NOT_MEASURED, (one.code,))
    baseline = {True: State.DONE, False: State.OPEN, None: State.NOT_MEASURED}[has_baseline]
    return Progress(
        Step("baseline measured", baseline),
        tuple(steps.values()),
        _final_pcc(by_step[Family.CORRECTNESS]),
        kind,
        _firsts(listed, kind),
        tuple(one.code for one in listed if one.fails and Family.VALIDITY.has(one.code)),
    )


def _step(name: str, states: Mapping[str, State | None]) -> Step:
    """Return a step, done only if a deciding rule answered."""
    known = set(states.values())
    if State.OPEN in known:
        return Step(name, State.OPEN, tuple(c for c, s in states.items() if s is State.OPEN))
    if State.SMALL in known:
        return Step(name, State.SMALL, tuple(c for c, s in states.items() if s is State.SMALL))
    told = set(_only(Role.DECIDES_STEP, states).values()) - {State.NOT_APPLICABLE}
    if State.DONE in known and told != {State.NOT_MEASURED}:
        unmeasured = sum(state is State.NOT_MEASURED for state in states.values())
        return Step(name, State.DONE, unmeasured=unmeasured)
    if known == {State.NOT_APPLICABLE}:
        return Step(name, State.NOT_APPLICABLE)
    return Step(name, State.NOT_MEASURED)


def _only(role: Role, states: Mapping[str, State | None]) -> dict[str, State | None]:
    return {code: state for code, state in states.items() if role.has(code)}


def _leaves_most(finding: Finding) -> bool:
    unexplained = Role.NAMES_UNEXPLAINED.has(finding.code) and finding.stands
    return unexplained and (finding.value or 0.0) > _MOST


def _firsts(findings: Sequence[Finding], kind: ModelKind | None) -> tuple[First, ...]:
    regions: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        if one.family.is_step and _state(one) is State.OPEN and one.covered_by is None:
            regions[one.region].append(one)
    # Rules that are asked once, of the whole capture, come behind those of a region.
    if len(regions) > 1:
        regions.pop("", None)
    firsts = (_first(chosen, kind) for chosen in regions.values())
    return tuple(sorted(firsts, key=lambda one: -(one.saving_ns or 0.0) / (one.step_ns or inf)))


def _first(chosen: Sequence[Finding], kind: ModelKind | None) -> First:
    """Return the finding with the largest saving; the kind decides between equals."""

    def doubt(finding: Finding) -> tuple[bool, bool]:
        bound = finding.at_most and kind is not ModelKind.HOST_BOUND
        return finding.severity is Severity.INFO, bound

    surest = min(map(doubt, chosen))
    chosen = [one for one in chosen if doubt(one) == surest]
    most = max(one.added_ns for one in chosen)
    order = tuple(dict.fromkeys((*(_FOCUS[kind] if kind is not None else ()), *_STEPS)))
    best = min(
        (one for one in chosen if one.added_ns >= _AS_MUCH * most),
        key=lambda one: (order.index(one.family), -one.added_ns / (one.step_ns or 1.0), one.code),
    )
    saving_ns = None if best.saving_ns is None else best.added_ns
    return First(best.code, best.name, best.region, saving_ns, best.step_ns, best.at_most)


def _final_pcc(states: Mapping[str, State | None]) -> Step:
    """Return the last step: done only by a compared PCC."""
    step = _step("final PCC", _only(Role.GUARDS_PCC, states))
    return step if step.state is State.OPEN else _step(step.name, _only(Role.DECIDES_STEP, states))


def _state(finding: Finding) -> State | None:
    if finding.outcome is not RuleOutcome.FOUND:
        if finding.outcome is not RuleOutcome.CLEAN:
            return _WITHOUT_ANSWER[finding.outcome]
        return State.SMALL if (finding.reason or "").startswith(TOO_SMALL) else State.DONE
    unexplained = Role.NAMES_UNEXPLAINED.has(finding.code)  # nothing to do follows from it
    if not finding.stands or (finding.saving_ns is None and (unexplained or finding.quiet)):
        return None
    little = finding.quiet and finding.covered_by is None
    return State.DONE if little else State.OPEN  # what little is left is no step
