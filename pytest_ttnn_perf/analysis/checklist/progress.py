"""Progress: done and open steps, and the finding to begin with."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.finding import (
    Family,
    First,
    ModelKind,
    Progress,
    Role,
    RuleOutcome,
    Severity,
    State,
    Step,
    family_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Finding, UnansweredRules


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
_SAYS: Final = (None, State.NOT_APPLICABLE, State.NOT_MEASURED, State.DONE, State.OPEN)


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
        _first(listed, kind),
        tuple(one.code for one in listed if one.fails and Family.VALIDITY.has(one.code)),
    )


def _step(name: str, states: Mapping[str, State | None]) -> Step:
    """Return a step, done only if a deciding rule answered."""
    known = set(states.values())
    if State.OPEN in known:
        return Step(name, State.OPEN, tuple(c for c, s in states.items() if s is State.OPEN))
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


def _first(findings: Sequence[Finding], kind: ModelKind | None) -> First | None:
    """Return the finding with the largest saving of open steps.

    The path of the kind decides where that is about the same, or nothing can be said. What is only
    for information, and upper bounds of a model that does not wait, come last.
    """
    chosen = [
        one
        for one in findings
        if one.family.is_step and _state(one) is State.OPEN and one.covered_by is None
    ]
    if not chosen:
        return None

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
        clean = finding.outcome is RuleOutcome.CLEAN
        return State.DONE if clean else _WITHOUT_ANSWER[finding.outcome]
    unexplained = Role.NAMES_UNEXPLAINED.has(finding.code)  # nothing to do follows from it
    if not finding.stands or (finding.saving_ns is None and (unexplained or finding.quiet)):
        return None
    little = finding.quiet and finding.covered_by is None
    return State.DONE if little else State.OPEN  # what little is left is no step
