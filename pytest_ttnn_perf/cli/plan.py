"""``ttnn-perf plan``: what was found, as steps with what each saves."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted, quantity
from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind, kind_of, read_run
from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.plan import (
    plan_of,
    reach_of,
    reaches_of,
    start_of,
    starts_of_test,
)
from pytest_ttnn_perf.analysis.checklist.progress import progress_of
from pytest_ttnn_perf.analysis.checklist.runner import (
    as_configured,
    in_regions,
    run_in_regions,
    select_rules,
)
from pytest_ttnn_perf.cli.artifacts import captures_of, complaining, look_at, newest_record
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.experiments.kept_state import read_steps
from pytest_ttnn_perf.records.finding import Input, RuleOutcome
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.report.plan import Planned, plan_listing, plan_markdown
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Rule
    from pytest_ttnn_perf.cli.artifacts import Capture
    from pytest_ttnn_perf.records.finding import Finding
    from pytest_ttnn_perf.records.observation import JudgedTest, Run
    from pytest_ttnn_perf.records.settings import Settings


def run(options: argparse.Namespace) -> Result:
    """Return the plans of captures, or of tests of a run; where none can be made, it cannot tell.

    Raises:
        InputError: a file is not what it should be.
        UsageError: nothing to look at, a test or a window that does not exist, or a target that is
            no time, or of more than one plan.
    """
    target_ns = _target_ns(options.target)
    settings = project_settings()
    chosen = _record_and_tests(options)
    errors: list[InputError] = []
    note = ""
    if chosen is None:
        planned, errors = _of_captures(options, settings)
    else:
        file, tests = chosen
        if file is None:
            file = newest_record(settings)
            if file is None:
                message = (
                    "nothing to plan: no run is recorded here: make one with pytest --ttnn-perf, "
                    "or name a capture or a run record"
                )
                raise UsageError(message)
            note = f"ttnn-perf: the newest run record: {file}{_outdated(file, settings)}\n"
        planned = _of_run(read_run(file), tests, file.name)
        if not planned:
            raise InputError(file, "expected a run record with tests, found none in it")
    if target_ns is not None:
        planned = _aimed(planned, target_ns)
    if not planned:
        return complaining(Result(""), errors)
    shape = options.format
    text = plan_markdown(planned) if shape == "markdown" else plan_listing(planned).text(shape)
    none = all(one.plan is None for one in planned)
    return complaining(Result(text, inconclusive=none, errors=note), errors)


def _target_ns(text: str | None) -> float | None:
    if text is None:
        return None
    found = quantity(text, unit="ns") if any(map(str.isalpha, text)) else None
    if found is None or not 0 < found < float("inf"):
        message = f"--target: expected a time with its unit, such as '12 ms', found {text!r}"
        raise UsageError(message)
    return found


def _aimed(planned: Sequence[Planned], target_ns: float) -> list[Planned]:
    made = [one for one in planned if one.plan is not None]
    if len(made) > 1:
        names = dict.fromkeys(": ".join(filter(None, (one.source, one.region))) for one in made)
        which = ", ".join([*list(names)[:5], *(["…"] if len(names) > 5 else [])])
        message = (
            f"--target is of one plan, and there are {len(made)}: {which}; name one, a region with "
            "--region"
        )
        raise UsageError(message)
    return [
        replace(one, aims=(reach_of(one.plan, target_ns),)) if one.plan else one for one in planned
    ]


def _record_and_tests(options: argparse.Namespace) -> tuple[Path | None, list[str]] | None:
    """Return the run record that words name, and the tests in it; None where they name captures.

    Words that name tests alone are of the newest record, which is None here.
    """
    words: list[str] = options.files
    others = [word for word in words if "::" not in word and not word.endswith(".py")]
    files = [word for word in others if Path(word).is_file()]
    kinds = {ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON}
    records = [word for word in files if kind_of(Path(word)) in kinds]
    if options.csv or options.db or options.log or (others and not records):
        return None
    tests = [word for word in words if word not in records]
    captures = [word for word in files if word not in records]
    if len(records) > 1 or captures:
        found = ", ".join([*records, *captures])
        message = f"expected captures, or one run record and tests in it, found {found}"
        raise UsageError(message)
    if options.region or options.start or options.end:
        message = "--region, --start and --end select ops of a capture, and there is none"
        raise UsageError(message)
    return Path(records[0]) if records else None, tests


def _of_captures(
    options: argparse.Namespace, settings: Settings
) -> tuple[list[Planned], list[InputError]]:
    groups = select_rules(settings.select, settings.ignore, settings.rules)
    rules = sorted((rule for group in groups for rule in group.rules), key=attrgetter("code"))
    captures = captures_of(options, options.files)
    found, errors = look_at(
        captures, lambda each: list(_of_capture(each, rules, settings, options))
    )
    planned = [one for _, plans in found for one in plans]
    if len(captures) == 1:
        planned = [replace(one, source="") for one in planned]
    return planned, errors


def _of_capture(
    capture: Capture,
    rules: Sequence[Rule],
    settings: Settings,
    options: argparse.Namespace,
) -> Iterator[Planned]:
    """Yield the plans of a capture: that of the region that ``check`` begins with, then others."""
    subject = capture.read(options)
    waived = {code for code, rule in settings.rules.items() if rule.waive}
    findings = as_configured(run_in_regions(rules, subject, waived), settings.rules)
    doubt = _doubt(findings)
    if doubt:
        yield Planned(capture.name, why_not=doubt)
        return
    look = f"ttnn-perf check {shlex.join(capture.files)} --all"
    _, kind = held_back(subject, settings.rules)
    first = progress_of(findings, has_baseline=None, kind=kind).first
    begin = first.region if first is not None else ""
    parts = sorted(in_regions(subject), key=lambda part: part.region != begin)
    for part in parts:
        start = start_of(part, settings.rules)
        if start is None:
            why = "there are no times in it; it takes an op table, such as an ops_perf_results CSV"
            yield Planned(capture.name, why_not=part.absent.get(Input.OPS, why))
            continue
        own = [one for one in findings if one.region == part.region or len(parts) == 1]
        start = replace(start, region=options.region or start.region)
        silent = {one.code for one in own if one.outcome is RuleOutcome.NOT_MEASURED}
        yield Planned(capture.name, plan_of(own, start), unanswered=len(silent), look=look)


def _doubt(findings: Iterable[Finding]) -> str:
    """Say why numbers cannot be trusted; "" where nothing is wrong with them."""
    for finding in findings:
        if finding.fails and finding.code.startswith("TTP0"):
            return f"{finding.code} {finding.name}: {finding.reason}: its numbers cannot be trusted"
    return ""


def _outdated(record: Path, settings: Settings) -> str:
    """Say how many steps were kept since a run: they are not in its plan."""
    with suppress(InputError):  # `ttnn-perf journal` says what is wrong with it
        since = [s for s in read_steps(settings.artifacts) if s.is_kept and s.id > record.stem]
        if since:
            kept = f"{counted(len(since), 'step')} kept since"
            return f"; without the {kept}: record anew with pytest --ttnn-perf"
    return ""


def _of_run(run: Run, words: Sequence[str], name: str) -> list[Planned]:
    """Return the plans of the tests of a run, the one that saves the largest part first."""
    tests = select_tests(tuple(run.tests), words, where=name)
    planned = [one for test in tests for one in _of_test(run.tests[test], run)]
    if len(tests) == 1 and words:
        planned = [replace(one, source="") for one in planned]

    def part_left(one: Planned) -> float:
        return one.plan.left_ns / one.plan.start.now_ns if one.plan else inf

    return sorted(planned, key=part_left)


def _of_test(judged: JudgedTest, run: Run) -> Iterator[Planned]:
    observation = judged.observation
    doubt = _doubt(observation.findings)
    if doubt:
        yield Planned(observation.test, why_not=doubt)
        return
    hardware = observation.hardware or run.hardware
    starts = list(starts_of_test(observation, hardware.arch if hardware else None))
    silent = {code for each in observation.unanswered for code in each.codes}
    for start in starts:
        own = [one for one in observation.findings if one.region == start.region]
        plan = plan_of(own, start)
        aims = tuple(reaches_of(observation, own, plan, alone=len(starts) == 1))
        look = "profile it, and ttnn-perf check its capture --all"
        yield Planned(observation.test, plan, aims, unanswered=len(silent), look=look)
    if not starts:
        why = (
            "the record has no device times and no finding with a saving: profile it, see "
            "ttnn-perf doctor"
        )
        yield Planned(observation.test, why_not=why)
