"""Progress: done and open steps, and the finding to begin with."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.finding import (
    First,
    ModelKind,
    Progress,
    RuleOutcome,
    Severity,
    State,
    Step,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Finding, Unanswered


#: The steps, by the first digit of their rules' codes.
_STEPS: Final = {
    1: "data formats",
    2: "layouts",
    3: "memory and sharding",
    4: "trace and host",
    5: "command queues",
    6: "convolutions",
    7: "several devices",
}
#: The rules that look at what a step is about. Others of it look at settings and at what is left to
#: do: while all of these are silent, nothing that they say makes the step done.
_DECIDING: Final[Mapping[int, frozenset[str]]] = {
    1: frozenset({"TTP101", "TTP103"}),
    2: frozenset({"TTP201", "TTP203"}),
    3: frozenset({"TTP301", "TTP303", "TTP305"}),
    4: frozenset({"TTP401", "TTP402", "TTP404"}),
    5: frozenset({"TTP502", "TTP503"}),
    6: frozenset({"TTP601", "TTP602", "TTP603", "TTP606", "TTP607"}),
    7: frozenset({"TTP703", "TTP704"}),
}
_PCC_LIMIT: Final = "TTP901"
_PCC: Final = frozenset({_PCC_LIMIT, "TTP902", "TTP903", "TTP904", "TTP907"})
#: Says what no rule explains: where that is most of a step, silence means nothing.
_UNEXPLAINED: Final = "TTP315"
_MOST: Final = 0.5
#: What saves that part of the largest saving saves about as much: estimates are not exact.
_AS_MUCH: Final = 0.95
#: Which steps pay first, by kind of model; the others follow in their order.
_FOCUS: Final[Mapping[ModelKind, tuple[int, ...]]] = {
    ModelKind.HOST_BOUND: (4, 5),
    ModelKind.LLM: (1, 4, 5),
    ModelKind.CNN: (3, 6),
    ModelKind.MEMORY_BOUND: (3, 1),
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
    unanswered: Iterable[Unanswered] = (),
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
    by_step: dict[str, dict[str, State | None]] = defaultdict(dict)
    for code, state in states.items():
        by_step[code[3]][code] = state
    steps = {
        number: _step(name, by_step[str(number)], _DECIDING[number])
        for number, name in _STEPS.items()
    }
    unexplained = [one.code for one in listed if _leaves_most(one)]
    for code in unexplained:
        number = int(code[3])
        if steps[number].state is State.DONE:
            steps[number] = Step(steps[number].name, State.NOT_MEASURED, (code,))
    baseline = {True: State.DONE, False: State.OPEN, None: State.NOT_MEASURED}[has_baseline]
    return Progress(
        Step("baseline measured", baseline),
        tuple(steps.values()),
        _final_pcc({code: state for code, state in states.items() if code in _PCC}),
        kind,
        _first(listed, kind),
        tuple(each.code for each in listed if each.fails and each.code.startswith("TTP0")),
    )


def _step(
    name: str, states: Mapping[str, State | None], deciding: frozenset[str] = frozenset()
) -> Step:
    """Return a step, done only if a deciding rule answered."""
    known = set(states.values())
    if State.OPEN in known:
        return Step(name, State.OPEN, tuple(c for c, s in states.items() if s is State.OPEN))
    told = {states[code] for code in deciding & states.keys()} - {State.NOT_APPLICABLE}
    if State.DONE in known and told != {State.NOT_MEASURED}:
        unmeasured = sum(state is State.NOT_MEASURED for state in states.values())
        return Step(name, State.DONE, unmeasured=unmeasured)
    if known == {State.NOT_APPLICABLE}:
        return Step(name, State.NOT_APPLICABLE)
    return Step(name, State.NOT_MEASURED)


def _leaves_most(finding: Finding) -> bool:
    return finding.code == _UNEXPLAINED and finding.stands and (finding.value or 0.0) > _MOST


def _first(findings: Sequence[Finding], kind: ModelKind | None) -> First | None:
    """Return the finding with the largest saving of open steps.

    The path of the kind decides where that is about the same, or nothing can be said. What is only
    for information, and upper bounds of a model that does not wait, come last.
    """
    chosen = [
        one
        for one in findings
        if int(one.code[3]) in _STEPS and _state(one) is State.OPEN and one.covered_by is None
    ]
    if not chosen:
        return None

    def doubt(finding: Finding) -> tuple[bool, bool]:
        bound = finding.at_most and kind is not ModelKind.HOST_BOUND
        return finding.severity is Severity.INFO, bound

    surest = min(map(doubt, chosen))
    chosen = [one for one in chosen if doubt(one) == surest]
    most = max(map(_adds, chosen))
    order = tuple(dict.fromkeys((*(_FOCUS[kind] if kind is not None else ()), *_STEPS)))
    best = min(
        (one for one in chosen if _adds(one) >= _AS_MUCH * most),
        key=lambda one: (
            order.index(int(one.code[3])),
            -_adds(one) / (one.step_ns or 1.0),
            one.code,
        ),
    )
    saving_ns = None if best.saving_ns is None else _adds(best)
    return First(best.code, best.name, best.region, saving_ns, best.step_ns, best.at_most)


def _adds(finding: Finding) -> float:
    return (finding.saving_ns if finding.adds_ns is None else finding.adds_ns) or 0.0


def _final_pcc(states: Mapping[str, State | None]) -> Step:
    """Return the last step: done only by a compared PCC."""
    step = _step("final PCC", states)
    if step.state is State.OPEN:
        return step
    return _step(step.name, {code: states[code] for code in states if code == _PCC_LIMIT})


def _state(finding: Finding) -> State | None:
    if finding.outcome is not RuleOutcome.FOUND:
        clean = finding.outcome is RuleOutcome.CLEAN
        return State.DONE if clean else _WITHOUT_ANSWER[finding.outcome]
    unexplained = finding.code == _UNEXPLAINED  # nothing to do follows from it
    if not finding.stands or (finding.saving_ns is None and (unexplained or finding.quiet)):
        return None
    little = finding.quiet and finding.covered_by is None
    return State.DONE if little else State.OPEN  # what little is left is no step
