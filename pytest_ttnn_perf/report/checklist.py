"""Findings and progress of the checklist, and the lines that are printed during a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted, percent, size, unit_for
from pytest_ttnn_perf.records.finding import RuleOutcome, Severity, State
from pytest_ttnn_perf.records.observation import TELLS
from pytest_ttnn_perf.records.region import Basis, Outside
from pytest_ttnn_perf.records.verdict import DriftKind, Outcome
from pytest_ttnn_perf.report.layout import Line
from pytest_ttnn_perf.report.numbers import (
    Listing,
    format_change,
    format_fraction,
    format_ns,
    format_value,
)
from pytest_ttnn_perf.report.sentences import change_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.records.finding import Finding, NeedlessWaiver, Progress, Step
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.region import StepTime
    from pytest_ttnn_perf.records.verdict import Drift, Drifting, Shift, Verdict


#: States in a table; a dash is what is not known, also as "done (2 -)": but for two rules.
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
    """Return how far one model has come, as the cells of a row."""
    return tuple(
        _SHORT[step.state] + (f" ({step.unmeasured} -)" if step.unmeasured else "")
        for step in progress.all
    )


def progress_block(progress: Progress) -> Iterator[str]:
    """Lay out how far one model has come, a step in a line."""
    yield "optimization progress:"
    for step in progress.all:
        yield f"  {step.name:<20} {_state(step)}"
    yield from first_step(progress)


def _progress_document(progress: Progress) -> dict[str, object]:
    return {
        "steps": [asdict(step) | {"state": step.state.value} for step in progress.all],
        "model_kind": progress.kind.value if progress.kind else None,
        "first": progress.steps[progress.first - 1].name if progress.first else None,
        "invalid": list(progress.invalid),
    }


def _state(step: Step) -> str:
    if step.unmeasured:
        return (
            f"{step.state.value}, as far as known: {counted(step.unmeasured, 'rule')} not measured"
        )
    return ": ".join(filter(None, (step.state.value, ", ".join(step.open_rules))))


def first_step(progress: Progress) -> Iterator[str]:
    """Say which step to take first, and for which kind of model that is the one."""
    if progress.invalid:
        yield f"first: validity, {', '.join(progress.invalid)}: the numbers cannot be trusted"
        return
    if progress.first is None:
        return
    step = progress.steps[progress.first - 1]
    kind = f" ({progress.kind.value})" if progress.kind else ""
    yield f"first{kind}: {step.name}, {', '.join(step.open_rules)}"


_CONFIRMED: Final = {
    Outcome.REGRESSED: "beyond its limit again",
    Outcome.SHIFTED: "only as slow as the machine",
}
#: From here on minutes say enough.
_MINUTES_FROM_S: Final = 120


def suspicion_line(test: str, suspects: Sequence[Verdict]) -> str:
    """Say that a test looks worse, and what happens now."""
    found = ", ".join(f"{v.metric.name} {change_in_words(v)}" for v in suspects)
    return f"ttnn-perf: {test}: {found}: to be measured again"


def device_pass_heading(tests: int, *, more_room: bool) -> str:
    """Say that tests are about to be profiled."""
    again = " again, with more room: the profiler dropped markers" if more_room else ""
    return f"ttnn-perf: device pass: profiling {counted(tests, 'test')}{again}"


def device_pass_line(*, done: int, of: int, left_s: float) -> str:
    """Say how far the device pass is."""
    left = f"{left_s:.0f} s" if left_s < _MINUTES_FROM_S else f"{left_s / 60:.0f} min"
    return f"ttnn-perf: device pass: {done} of {counted(of, 'test')}, about {left} left"


def confirm_heading(tests: int, controls: int, *, number: int, passes: int) -> str:
    """Say that a confirm pass begins."""
    what = [counted(tests, "test")] if tests else []
    what += [counted(controls, "control")] if controls else []
    again = f"measuring {' and '.join(what)} again in a fresh process"
    return f"ttnn-perf: confirm pass {number} of {passes}: {again}"


def controls_line(controls: int, move: float) -> str:
    """Say what tests that are not suspect show of the machine."""
    whose = "its baseline" if controls == 1 else "their baselines"
    return f"ttnn-perf: {counted(controls, 'control')}: {_way(move)} {whose}"


def shift_refuted_line(shift: Shift) -> str:
    """Say that it is not the machine after all."""
    moved = f"{shift.moved} of {counted(shift.voting, 'test')}"
    return f"ttnn-perf: not the environment: {moved} moved, and the controls did not"


def _way(move: float) -> str:
    if format_change(move) == format_change(0):
        return "as fast as"
    return f"{format_fraction(abs(move))} {'slower' if move > 0 else 'faster'} than"


def confirm_line(test: str, verdict: Verdict) -> str:
    """Say what measuring a suspect again has shown."""
    if verdict.outcome is Outcome.NO_DATA or not verdict.confirmed:
        return f"ttnn-perf: {test}: {verdict.metric.name} could not be confirmed"
    value = format_value(verdict.metric, verdict.confirmed[-1], beside=verdict.centre)
    then = format_value(verdict.metric, verdict.centre)
    result = _CONFIRMED.get(verdict.outcome, "within its limit now")
    return f"ttnn-perf: {test}: {verdict.metric.name} {value}, baseline {then}: {result}"


def shift_line(shift: Shift) -> str:
    """Say that the whole machine is slower or faster, by how much, and what differs."""
    return f"environment shifted: {shift_size(shift)}"


def shift_size(shift: Shift) -> str:
    """Say the same without its name."""
    way = "slower" if shift.worse else "faster"
    # A time that is 8 % shorter reads as 8 % faster; the gate reckons it as a ratio.
    size = format_fraction(abs(shift.change))
    moved = f"{shift.moved} of {counted(shift.voting, 'test')} moved the same way"
    differs = "; ".join(shift.differences) or "nothing that is recorded differs"
    return f"{size} {way} as a whole ({moved}); {differs}"


def shift_advice(shift: Shift, accept: str, *, failed: bool) -> Iterator[str]:
    """Say what a shift means for the run, and what to do; ``failed``: a test failed by name."""
    if shift.worse and not failed:
        yield "no test failed by name, and none is known to have passed: exit code 6"
    yield "run it again on a machine that is as it was when the baselines were accepted"
    yield "the machine, or a change that all tests share? compare in turns: ttnn-perf ab REF"
    yield f"if it is to stay: {accept}"


def drift_line(drifting: Drifting) -> str:
    """Say what did not stay the same while it was measured."""
    drift, count = drifting.drift, drifting.count
    way = f"{format_fraction(abs(drift.change))} {'slower' if drift.change > 0 else 'faster'}"
    if drifting.metric is None:
        tests = counted(count, "test")
        return f"drift of the run: {way} against the baselines {_course(drift, tests)}"
    course = _course(drift, counted(count, "sample"))
    return (
        f"drift {drifting.test}: {drifting.metric} got {way} {course}: a clock or a temperature "
        "that had not settled; more warm-up may help"
    )


def _course(drift: Drift, all_of_them: str) -> str:
    if drift.kind is DriftKind.STEP:
        return f"after the first {drift.position} of {all_of_them}"
    return f"in the course of {all_of_them}"


_FIELDS: Final = (
    *("code", "name", "severity", "outcome", "reason", "value", "limit", "unit", "fix", "waived"),
    *("region", "saving_ns", "adds_ns", "arithmetic", "quiet"),
)


#: The beginning of the codes of rules that ask whether a capture can be trusted.
_VALIDITY: Final = "TTP0"


@dataclass(frozen=True, slots=True)
class Checklist:
    """What the rules say of artifacts, and of which regions."""

    findings: tuple[Finding, ...]
    regions: tuple[StepTime, ...] = ()
    outside: Outside = Outside()
    bottleneck: str | None = None
    progress: Progress | None = None


def checklist_listing(report: Checklist, *, hide_quiet: bool = True) -> Listing:
    """Lay findings out in the order in which they are worth reading, region by region."""
    findings = report.findings
    found = [finding for finding in findings if finding.outcome is RuleOutcome.FOUND]
    shown_ones = [finding for finding in found if not (hide_quiet and finding.quiet)]
    # What makes all numbers doubtful comes before them.
    first = [one for one in shown_ones if one.code.startswith(_VALIDITY) or not report.regions]
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
    lines += [*_quiet(findings, hide=hide_quiet), ""]
    lines += [f"bottleneck: {report.bottleneck}"] if report.bottleneck else []
    lines += progress_block(report.progress) if report.progress else ()
    documents = [finding_document(finding) for finding in findings]
    rows = tuple(tuple(each[name] for name in _FIELDS) for each in documents)
    document = {
        "rules": documents,
        "bottleneck": report.bottleneck,
        "progress": _progress_document(report.progress) if report.progress else None,
        "regions": [asdict(each) | {"basis": each.basis.value} for each in report.regions],
        "outside": asdict(report.outside),
    }
    return Listing((*lines, count_line(findings)), document, _FIELDS, rows)


def _found_lines(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in by_saving(findings):
        yield from finding_lines(finding, numbered=True)


def by_saving(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in the order to read them: errors, then what saves most, then by code."""
    return sorted(findings, key=lambda one: (not one.fails, -(one.saving_ns or 0.0), one.code))


def step_line(time: StepTime) -> str:
    """Say what a region is, and what a step of it takes."""
    name = time.region or "all ops"
    devices = time.devices_ns
    on = ""
    if len(devices) > 1:
        least = format_ns(min(devices.values()))
        on = f" on the slowest of {len(devices)} devices, {least} on the fastest"
    steps = "" if time.basis is Basis.WHOLE else f", {counted(time.steps, time.basis.value)}"
    return f"{name}: {format_ns(time.step_ns)} in {counted(time.ops, 'op')}{steps}{on}"


def outside_lines(outside: Outside) -> Iterator[str]:
    """Say how much is in no region."""
    if outside.ops:
        ops = counted(outside.ops, "op")
        yield f"in no region: {format_ns(outside.kernel_ns)} in {ops} (loading, warm-up)"


def _hidden_lines(findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        codes = ", ".join(sorted({finding.code for finding in findings}))
        yield f"not shown, as too little can be saved or told: {codes}; --all shows them"


def finding_lines(finding: Finding, *, numbered: bool = False) -> Iterator[str]:
    """Lay one finding out: what was found against the limit, where, and what to do.

    Of a file, ops are ``numbered`` as ``ttnn-perf show --ops`` numbers them.
    """
    yield title(finding)
    yield from evidence_lines(finding, numbered=numbered)
    yield from saving_lines(finding)
    yield from advice_lines(finding)


def saving_lines(finding: Finding) -> Iterator[str]:
    """Say what doing as the rule says would save of a step, and how that is reckoned."""
    if finding.saving_ns is not None:
        adds = finding.adds_ns if finding.adds_ns is not None else finding.saving_ns
        beside = "" if _same(adds, finding.saving_ns) else f", {format_ns(adds)} beside the above"
        how = f": {finding.arithmetic}" if finding.arithmetic else ""
        yield f"    would save {format_ns(finding.saving_ns)} of a step{beside}{how}"


def _same(adds_ns: float, saving_ns: float) -> bool:
    return format_ns(adds_ns) == format_ns(saving_ns)


def title(finding: Finding) -> str:
    """Say in one line what was found, against which limit."""
    name = f"{finding.code} {finding.name} ({finding.severity.value})"
    waived = "" if finding.waived is None else f"; waived: {finding.waived}"
    limit = "" if finding.limit is None else f", limit {shown(finding.limit, finding.unit)}"
    return f"{name}: {finding.reason}{limit}{waived}"


#: How many ops are told by their numbers.
_MOST_NUMBERS: Final = 3


def evidence_lines(finding: Finding, *, numbered: bool = False) -> Iterator[str]:
    """Say where it was found, unless that is what the reason says."""
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
    """Say what to do about it, and where there is more to read."""
    if finding.fix and finding.waived is None:
        yield f"    fix: {finding.fix}"
        if finding.code.startswith("TTP"):  # rules of other plugins have no page here
            yield f"    see: ttnn-perf rules {finding.code}"


def count_line(findings: Iterable[Finding]) -> str:
    """Count the outcomes of rules, also of those that were not measured.

    A rule that was asked of several regions counts where it says most.
    """
    told = sorted(findings, key=lambda finding: TELLS.index(finding.outcome))
    outcomes = Counter({finding.code: finding.outcome for finding in told}.values())
    counts = ", ".join(
        f"{outcomes[outcome]} {outcome.value}" for outcome in RuleOutcome if outcomes[outcome]
    )
    return f"{counted(sum(outcomes.values()), 'rule')}: {counts}"


def _quiet(findings: Iterable[Finding], *, hide: bool) -> Iterator[str]:
    """Say in one line each why rules could not be asked, or need not be, of any region.

    Or, to ``hide`` that, how many could not.
    """
    listed = sorted(findings, key=lambda finding: TELLS.index(finding.outcome))
    most = {finding.code: finding for finding in listed}
    if hide:
        outcomes = Counter(finding.outcome for finding in most.values())
        if outcomes[RuleOutcome.NOT_MEASURED]:
            rules = counted(outcomes[RuleOutcome.NOT_MEASURED], "rule")
            yield f"{rules} could not be asked of this; --all says what they need"
        return
    for outcome in (RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE):
        reasons: dict[str, list[str]] = {}
        for code in sorted(most):
            if most[code].outcome is outcome:
                reasons.setdefault(most[code].reason or "", []).append(code)
        for reason, codes in reasons.items():
            yield f"{outcome.value} {', '.join(codes)}: {reason}"


def finding_document(finding: Finding) -> dict[str, object]:
    """Return a finding as plain JSON."""
    named = {"severity": finding.severity.value, "outcome": finding.outcome.value}
    return asdict(finding) | named


def shown(value: float, unit: str) -> str:
    """Return a number in its unit; fractions "of" something, or "above" it, in per cent."""
    if unit.startswith(("of ", "above ")):
        return f"{format_fraction(value)} {unit}"
    if unit == "ns":
        return format_ns(value)
    if unit in {"B", "bytes"}:
        return size(value)
    if unit.startswith("B "):
        return f"{size(value)} {unit.removeprefix('B ')}"
    return f"{value:,.4g} {unit_for(value, unit)}".strip()


#: The heaviest first; what is only for information comes last, without evidence and advice.
_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)
#: How many tests with the same finding are named; the others are counted.
_MOST_TESTS: Final = 3


def findings_lines(
    tests: Sequence[JudgedTest], *, told: frozenset[str] = frozenset()
) -> Iterator[Line]:
    """Lay out what was found, one finding that several tests share once, and what to do.

    What fails the tests in ``told`` was said with their failure.
    """
    lines = [
        Line(f"{judged.observation.test}: bottleneck: {judged.observation.bottleneck}")
        for judged in tests
        if judged.observation.bottleneck is not None
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
    """Count what was found, by severity; nothing if there is nothing."""
    found = Counter(
        finding.severity for judged in tests for finding in _found(judged) if finding.stands
    )
    counts = ", ".join(
        counted(found[severity], severity.value) for severity in _ORDER[:2] if found[severity]
    )
    return counts and f"checklist: {counts}"


#: Rules that ask about the machine: what they find is said once, whichever test met it.
_OF_MACHINE: Final = frozenset({"TTP004", "TTP006"})


def _by_finding(tests: Sequence[JudgedTest], told: frozenset[str]) -> dict[Finding, list[str]]:
    """Return every finding, with the tests that have just the same."""
    found: dict[Finding, list[str]] = {}
    machine: dict[tuple[str, str | None], Finding] = {}
    for judged in tests:
        test = judged.observation.test
        for finding in _found(judged):
            same = finding
            if finding.code in _OF_MACHINE:
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
    """Say which waivers are for nothing: they would hide what comes later."""
    for waiver in waivers:
        place = f"rules.{waiver.code}" if waiver.test is None else f"{waiver.test}: waive"
        if waiver.known:
            yield Line(f"{place}: {waiver.code} found nothing; remove the waiver")
        else:
            yield Line(f"{place}: {waiver.code} is no rule; `ttnn-perf rules` lists them")
