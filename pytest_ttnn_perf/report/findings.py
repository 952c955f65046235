"""Findings and progress of the checklist."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct, to_builtins

from pytest_ttnn_perf.core.finding import OURS, Basis, Family, Role, RuleOutcome, Severity, State
from pytest_ttnn_perf.core.observation import TELLS
from pytest_ttnn_perf.core.text import counted, microseconds, percent, size, unit_for
from pytest_ttnn_perf.report.tables import Line, Listing, format_fraction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.core.finding import Finding, NeedlessWaiver, Outside, Progress, StepTime
    from pytest_ttnn_perf.core.observation import JudgedTest


#: States in a table; a dash is unknown, also as "done (2 -)": but for two rules.
_SHORT: Final = {
    State.DONE: "done",
    State.OPEN: "OPEN",
    State.NOT_MEASURED: "-",
    State.NOT_APPLICABLE: "n/a",
}
PROGRESS_TITLES: Final = (
    *("test", "baseline", "1 formats", "2 layouts", "3 memory", "4 trace", "5 queues", "6 convs"),
    *("7 devices", "PCC"),
)


def progress_cells(progress: Progress) -> tuple[str, ...]:
    """Return the progress of one model as the cells of a row."""
    return tuple(
        _SHORT[step.state] + (f" ({step.unmeasured} -)" if step.unmeasured else "")
        for step in progress.all
    )


def progress_block(progress: Progress) -> Iterator[str]:
    """Lay out the progress of one model, a step in a line."""
    yield "optimization progress:"
    for step in progress.all:
        state = ": ".join(filter(None, (step.state.value, ", ".join(step.open_rules))))
        if step.unmeasured:
            rules = counted(step.unmeasured, "rule")
            state = f"{step.state.value}, as far as known: {rules} not measured"
        yield f"  {step.name:<20} {state}"
    yield from first_step(progress)


def _progress_document(progress: Progress) -> dict[str, object]:
    return {
        "steps": [to_builtins(step) for step in progress.all],
        "model_kind": progress.kind.value if progress.kind else None,
        "first": to_builtins(progress.first) if progress.first else None,
        "invalid": list(progress.invalid),
    }


def first_step(progress: Progress) -> Iterator[str]:
    """Yield the finding to begin with, and its saving."""
    if progress.invalid:
        yield f"first: validity, {', '.join(progress.invalid)}: it puts everything else in doubt"
        return
    first = progress.first
    if first is None:
        return
    worth = ""
    if first.saving_ns is not None:
        worth = f", {'at most' if first.at_most else 'up to'} {microseconds(first.saving_ns)}"
        # Else it is of a wall time, of which the step is a part.
        if first.step_ns is not None and first.step_ns >= first.saving_ns:
            worth += f" of {microseconds(first.step_ns)}"
    where = f" in {first.region}" if first.region else ""
    yield f"first: {first.code} {first.name}{where}{worth}"


_FIELDS: Final = (
    *("code", "name", "severity", "outcome", "reason", "value", "limit", "unit", "fix", "waived"),
    *("region", "saving_ns", "adds_ns", "arithmetic", "quiet", "step_ns", "at_most"),
    "covered_by",
)


class Checklist(Struct, frozen=True):
    """The findings about artifacts; ``doubt`` is why there are no more."""

    findings: tuple[Finding, ...]
    regions: tuple[StepTime, ...] = ()
    outside: Outside | None = None
    bottleneck: str | None = None
    progress: Progress | None = None
    doubt: str | None = None


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
        lines += [f"bottleneck: {each}" for each in _clauses(report.bottleneck)]
        lines += progress_block(report.progress) if report.progress else ()
    documents = [finding_document(finding) for finding in findings]
    rows = tuple(tuple(each[name] for name in _FIELDS) for each in documents)
    document = {
        "rules": documents,
        "doubt": report.doubt,
        "bottleneck": report.bottleneck,
        "progress": _progress_document(report.progress) if report.progress else None,
        "regions": [to_builtins(each) for each in report.regions],
        "outside": None if report.outside is None else to_builtins(report.outside),
    }
    return Listing((*lines, count_line(findings)), document, _FIELDS, rows)


def _clauses(bottleneck: str | None) -> list[str]:
    return (bottleneck or "").splitlines()  # a region in a line


def _found_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in by_saving(findings):
        yield from finding_lines(finding, numbered=True)


def by_saving(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors, then by saving, then by code."""
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


def step_line(time: StepTime) -> str:
    """Return the time of a step of a region, in words."""
    name = time.region or "all ops"
    devices = time.devices_ns
    on = ""
    if len(devices) > 1:
        least = microseconds(min(devices.values()))
        on = f", on the slowest of {len(devices)} devices ({least} on the fastest)"
    steps = "" if time.basis is Basis.WHOLE else f", {counted(time.steps, time.basis.value)}"
    gaps = ""
    if time.gaps_ns is not None:
        # Outside a replay the profiler itself makes gaps longer.
        most = "" if time.basis is Basis.REPLAYS else "at most "
        gaps = f" and {most}{microseconds(time.gaps_ns)} of gaps"
    took = f"{microseconds(time.step_ns)} of kernels{gaps}"
    return f"{name}: {took} in {counted(time.ops, 'op')}{steps}{on}"


def outside_lines(outside: Outside | None) -> Iterator[str]:
    """Yield the time that is in no region."""
    if outside is not None and outside.ops:
        ops = counted(outside.ops, "op")
        took = microseconds(outside.kernel_ns)
        yield f"in no region: {took} in {ops} (loading, compilation, warm-up)"


def _hidden_lines(findings: Sequence[Finding]) -> Iterator[str]:
    # Those that another finding covers are named there.
    alone = [finding for finding in findings if finding.covered_by is None]
    for known, why in ((True, "too little to save"), (False, "no saving known")):
        codes = sorted({one.code for one in alone if (one.saving_ns is not None) is known})
        if codes:
            yield f"not shown, {why}: {', '.join(codes)}; --all shows them"


def finding_lines(finding: Finding, *, numbered: bool = False) -> Iterator[str]:
    """Lay one finding out; ops are ``numbered`` as ``ttnn-perf show --ops`` does."""
    yield title(finding)
    yield from evidence_lines(finding, numbered=numbered)
    yield from saving_lines(finding)
    yield from advice_lines(finding)


def saving_lines(finding: Finding) -> Iterator[str]:
    """Yield the estimated saving of a step, and its arithmetic."""
    if finding.saving_ns is not None:
        saving = microseconds(finding.saving_ns)
        adds = microseconds(finding.added_ns)
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
    """Return a finding in one line, with its limit."""
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
    """Yield what to do about a finding, and where to read more."""
    if finding.fix and finding.waived is None:
        yield f"    fix: {finding.fix}"
        if finding.code.startswith(OURS):  # rules of other plugins have no page here
            yield f"    see: ttnn-perf rules {finding.code}"


def count_line(findings: Iterable[Finding]) -> str:
    """Count the outcomes of rules over all regions."""
    outcomes = Counter(finding.outcome for finding in _knowing_most(findings).values())
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome.value}" for outcome in RuleOutcome if outcomes[outcome]
    )
    return f"{counted(sum(outcomes.values()), 'rule')}: {counts}"


def _quiet(findings: Iterable[Finding], *, hide: bool) -> Iterator[str]:
    """Yield the reasons of rules without an answer, or their number."""
    most = _knowing_most(findings)
    if hide:
        unknown = sum(one.outcome is RuleOutcome.NOT_MEASURED for one in most.values())
        if unknown:
            rules = counted(unknown, "rule")
            yield f"{rules} could not be answered from this; check --all says what they need"
        return
    for outcome in (RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE):
        reasons: dict[str, list[str]] = {}
        for code in sorted(most):
            if most[code].outcome is outcome:
                reasons.setdefault(most[code].reason or "", []).append(code)
        for reason, codes in reasons.items():
            yield f"{outcome.value} {', '.join(codes)}: {reason}"


def _knowing_most(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return for each rule the finding that knows most."""
    ordered = sorted(findings, key=lambda finding: TELLS.index(finding.outcome))
    return {finding.code: finding for finding in ordered}


def finding_document(finding: Finding) -> dict[str, object]:
    """Return a finding as plain JSON."""
    plain = {name: getattr(finding, name) for name in finding.__struct_fields__}
    named = {"severity": finding.severity.value, "outcome": finding.outcome.value}
    return plain | named | {"evidence": tuple(map(to_builtins, finding.evidence))}


def shown(value: float, unit: str) -> str:
    """Return a number in its unit; fractions "of" something in per cent."""
    if unit.startswith(("of ", "above ")):
        return f"{format_fraction(value)} {unit}"
    if unit == "ns":
        return microseconds(value)
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
    tests: Sequence[JudgedTest], *, told: frozenset[str] = frozenset()
) -> Iterator[Line]:
    """Lay out the findings of a run, each once.

    Those that fail the tests in ``told`` were shown with their failure.
    """
    lines = [
        Line(f"{judged.observation.test}: bottleneck: {clause}")
        for judged in tests
        for clause in _clauses(judged.observation.bottleneck)
    ]
    advised: set[str] = set()
    shared = _by_finding(tests, told)
    for severity in _ORDER:
        for finding, names in shared.items():
            if finding.severity is severity:
                bad = finding.fails
                lines += [Line(text, bad=bad) for text in _finding(finding, names, advised)]
    if lines:
        yield Line("optimization checklist")
        yield from lines
        yield Line("")


def findings_count(tests: Sequence[JudgedTest]) -> str:
    """Count findings by severity; empty without any."""
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


def waiver_lines(waivers: Iterable[NeedlessWaiver]) -> Iterator[Line]:
    """Name the waivers that hide nothing: they would hide what comes later."""
    for waiver in waivers:
        place = f"rules.{waiver.code}" if waiver.test is None else f"{waiver.test}: waive"
        if waiver.known:
            yield Line(f"{place}: {waiver.code} found nothing; remove the waiver")
        else:
            yield Line(f"{place}: {waiver.code} is not a rule; `ttnn-perf rules` lists them")
