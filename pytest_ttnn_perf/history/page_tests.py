"""What a page shows of one test of a run: its verdicts, its numbers and its findings."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, visible
from pytest_ttnn_perf.gate.judge import NO_METRIC, settled_value
from pytest_ttnn_perf.history.page_series import seen
from pytest_ttnn_perf.records.finding import RuleOutcome
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.checklist import (
    advice_lines,
    by_saving,
    evidence_lines,
    saving_lines,
    title,
)
from pytest_ttnn_perf.report.notes import recorded_only
from pytest_ttnn_perf.report.numbers import display_unit, format_value
from pytest_ttnn_perf.report.page.contents import PageFinding, PageMetric, PageTest
from pytest_ttnn_perf.report.sentences import ACCEPTED, outcome_word, sentence
from pytest_ttnn_perf.report.terminal import by_remedy, worth_saying

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.history.page_series import EarlierRuns
    from pytest_ttnn_perf.records.finding import Finding, Unanswered
    from pytest_ttnn_perf.records.metric import Metric
    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation
    from pytest_ttnn_perf.records.verdict import Verdict
    from pytest_ttnn_perf.report.ci import CiReport

#: Of more samples, those at equal distances are drawn.
MOST_SAMPLES: Final = 200
#: Words for tests that no verdict names, and for those that fail whatever their verdicts are.
_RECORDED, _NO_ROOM, _MISTAKE, _FINDING = "RECORDED", "OUT_OF_MEMORY", "ERROR", "FINDING"
#: What comes first, the worst.
_ORDER: Final = (
    _MISTAKE,
    Outcome.REGRESSED.value,
    Outcome.NO_DATA.value,
    Outcome.TOO_NOISY.value,
    Outcome.NOT_COMPARABLE.value,
    Outcome.NO_BASELINE.value,
    _FINDING,
    Outcome.SHIFTED.value,
    ACCEPTED,
    Outcome.IMPROVED.value,
    _NO_ROOM,
    Outcome.WITHIN.value,
    _RECORDED,
)


def page_tests(report: CiReport, earlier: EarlierRuns) -> list[tuple[JudgedTest, PageTest]]:
    """Return all tests of a run, the worst first, without what their ops tell."""
    found = [(judged, _test(report, judged, earlier)) for judged in report.tests]
    found.sort(key=lambda pair: (pair[1].worst, -_change(pair[0]), pair[1].id))
    return found


def _test(report: CiReport, judged: JudgedTest, earlier: EarlierRuns) -> PageTest:
    observation = judged.observation
    failed = report.failed(judged)
    hardware = observation.hardware or report.run.hardware
    key = hardware.key if hardware else ""
    outcome = _outcome(report, judged)
    commands, advice = _remedies(report, judged)
    return PageTest(
        id=visible(observation.test),
        outcome=outcome,
        failed=failed,
        # What failed comes before everything that did not.
        worst=_ORDER.index(outcome) + (0 if failed else len(_ORDER)),
        key=key,
        setting=tuple(
            (visible(name), visible(str(value)))
            for name, value in sorted(observation.setting.values.items())
        ),
        summary=visible("; ".join([*_summary(judged, outcome), *advice])),
        by_op=visible(judged.by_op or ""),
        commands=tuple(commands),
        metrics=tuple(_metrics(judged, key, earlier)),
        findings=tuple(
            page_findings(judged.findings, observation.unanswered, enforced=report.enforced)
        ),
    )


def _outcome(report: CiReport, judged: JudgedTest) -> str:
    """Return the word for a test: that of its worst verdict, or of what else fails it."""
    if judged.observation.problems:
        return _MISTAKE
    words = [outcome_word(verdict, judged) for verdict in judged.verdicts]
    if report.failed(judged) and report.enforced and any(f.fails for f in judged.findings):
        words.append(_FINDING)
    # It is a result of a point of a sweep, and no failure.
    alone = _RECORDED if judged.observation.out_of_memory is None else _NO_ROOM
    return min(words, key=_ORDER.index, default=alone)


def _change(judged: JudgedTest) -> float:
    """Return the largest change for the worse, without what is noise of the last digits."""
    return round(max((verdict.change or 0.0 for verdict in judged.verdicts), default=0.0), 3)


def _summary(judged: JudgedTest, outcome: str) -> Iterator[str]:
    """Say what decided; of several verdicts that did, the one that changed most."""
    observation = judged.observation
    if outcome == _MISTAKE:
        yield from observation.problems
    elif outcome == _FINDING:
        yield from (title(finding) for finding in judged.findings if finding.fails)
    else:
        decided = [v for v in judged.verdicts if outcome_word(v, judged) == outcome]
        if decided:
            yield sentence(max(decided, key=lambda verdict: abs(verdict.change or 0.0)))
        elif observation.out_of_memory is not None:
            yield f"out of memory: {observation.out_of_memory}"
        elif observation.bottleneck is not None:
            yield from observation.bottleneck.splitlines()
        else:
            yield f"nothing is gated: {counted(len(observation.metrics), 'metric')} recorded only"


def _remedies(report: CiReport, judged: JudgedTest) -> tuple[list[str], list[str]]:
    """Return the commands that resolve what is wrong, and advice that no command follows."""
    options = report.summary_options
    told = [v for v in judged.verdicts if worth_saying(v, judged, summary_options=options)]
    failed = report.failed(judged)
    blocked = failed and any(finding.fails for finding in judged.findings)
    shifted = options.shift is not None
    groups = by_remedy(judged, told, rerun=options.rerun, blocked=blocked, shifted=shifted)
    remedies = [group.remedy for group in groups if group.remedy is not None]
    commands = [remedy.command for remedy in remedies if remedy.command is not None]
    profile = options.rerun.full_profile(judged.observation) if failed else None
    if profile is not None and not judged.observation.problems:
        commands.append(profile)
    return commands, [remedy.advice for remedy in remedies if remedy.command is None]


def _metrics(judged: JudgedTest, key: str, earlier: EarlierRuns) -> Iterator[PageMetric]:
    """Yield what was judged, then what was only recorded."""
    for verdict in judged.verdicts:
        if verdict.metric.name != NO_METRIC.name:
            yield _metric(judged, verdict.metric, verdict, key, earlier)
    for name in recorded_only(judged):
        yield _metric(judged, judged.observation.metrics[name].metric, None, key, earlier)


def _metric(
    judged: JudgedTest, metric: Metric, verdict: Verdict | None, key: str, earlier: EarlierRuns
) -> PageMetric:
    observation = judged.observation
    observed = observation.metrics.get(metric.name)
    value = verdict.observed if verdict else None
    if value is None and observed is not None:
        value = settled_value(observed)
    centre = verdict.centre if verdict else None
    unit, scale = display_unit(metric, value if centre is None else centre)
    setting = tuple(sorted(observation.setting.values.items(), key=lambda item: item[0]))
    gated = verdict is not None and verdict.reason is not Reason.EXPLAINS

    def shown(number: float | None) -> float | None:
        return None if number is None or not isfinite(number) else seen(metric, number)

    return PageMetric(
        name=visible(metric.name),
        unit=visible(unit),
        scale=scale,
        better=metric.better.value,
        outcome=outcome_word(verdict, judged) if verdict else "",
        sentence=visible(sentence(verdict) if verdict else _recorded(metric, value, observed)),
        value=shown(value),
        baseline=shown(centre),
        limit=shown(verdict.worst_allowed) if verdict else None,
        target=shown(observed.limits.target) if observed else None,
        gated=gated,
        why_ungated=visible((observed and observed.why_ungated) or ""),
        samples=_samples(metric, observed.samples) if observed else (),
        confirmations=tuple(_samples(metric, each) for each in observed.confirmations)
        if observed
        else (),
        history=earlier.of((observation.test, metric, key, setting)),
        change=verdict.change_as_read if verdict else None,
    )


def _recorded(metric: Metric, value: float | None, observed: MetricObservation | None) -> str:
    if value is None:
        note = observed.note if observed else None
        return ": ".join(filter(None, (f"{metric.name} not measured", note)))
    return f"{metric.name} {format_value(metric, value)}, recorded only"


def _samples(metric: Metric, samples: Sequence[float]) -> tuple[float, ...]:
    finite = [sample for sample in samples if isfinite(sample)]
    step = -(-len(finite) // MOST_SAMPLES) or 1
    return tuple(seen(metric, sample) for sample in finite[::step])


def page_findings(
    findings: Sequence[Finding], unanswered: Iterable[Unanswered] = (), *, enforced: bool
) -> Iterator[PageFinding]:
    """Yield what was found, what saves most first, what is waived, and what was not measured."""
    found = [f for f in findings if f.outcome is RuleOutcome.FOUND and not f.quiet]
    for finding in by_saving(found):
        if finding.stands:
            yield _finding(finding, "found", enforced=enforced)
    for finding in by_saving(found):
        if not finding.stands:
            yield _finding(finding, "waived", enforced=enforced)
    reasons: dict[str, dict[str, None]] = {}
    for group in unanswered:
        if group.outcome is RuleOutcome.NOT_MEASURED:
            reasons.setdefault(group.reason, {}).update(dict.fromkeys(group.codes))
    for finding in findings:
        if finding.outcome is RuleOutcome.NOT_MEASURED:
            reasons.setdefault(finding.reason or "", {})[finding.code] = None
    for reason, codes in reasons.items():
        one = len(codes) == 1
        yield PageFinding(
            code=next(iter(codes)) if one else counted(len(codes), "rule"),
            title=visible(reason),
            state="not measured",
            evidence=() if one else (", ".join(codes),),
        )


def _finding(finding: Finding, state: str, *, enforced: bool) -> PageFinding:
    saving_ns, step_ns = finding.saving_ns, finding.step_ns
    # What is saved of a wall time may be more than a step, which is a part of that.
    of_step = saving_ns / step_ns if saving_ns is not None and step_ns else None
    evidence = (*evidence_lines(finding), *saving_lines(finding))
    return PageFinding(
        code=finding.code,
        title=visible(title(finding).removeprefix(f"{finding.code} ")),
        state=state,
        fails=finding.fails and enforced,
        region=visible(finding.region),
        saving_us=None if saving_ns is None else round(saving_ns / 1000, 3),
        share=None if of_step is None or of_step > 1 else round(of_step, 4),
        evidence=tuple(visible(text.strip()) for text in evidence),
        fix=tuple(visible(text.strip()) for text in advice_lines(finding)),
    )
