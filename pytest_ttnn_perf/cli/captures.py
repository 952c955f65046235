"""Commands that ask about the optimization checklist: check, analyze, plan, rules."""

from __future__ import annotations

import shlex
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.plan import (
    Chance,
    RegionPlan,
    plan_of,
    reach_of,
    reaches_of,
    start_of,
    starts_of_test,
)
from pytest_ttnn_perf.analysis.checklist.runner import (
    all_rules,
    codes,
    in_regions,
    run_in_regions,
    select_rules,
    trusted,
)
from pytest_ttnn_perf.analysis.checklist.savings import told_gaps_ns
from pytest_ttnn_perf.analysis.ops.regions import Outside, critical_step_of, regions_of, step_time
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, kind_of, read_run
from pytest_ttnn_perf.analysis.show.checklist import (
    Checklist,
    checklist_listing,
    plan_listing,
)
from pytest_ttnn_perf.analysis.show.groups import (
    ANALYSES,
    analysis_listing,
)
from pytest_ttnn_perf.analysis.show.kernels import cycle_plan, goals_of, questions
from pytest_ttnn_perf.cli.common import (
    add_argument,
    add_captures,
    add_format,
    capture_of,
    newest_record,
    select_tests,
)
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import (
    Family,
    Input,
    RuleOutcome,
    as_configured,
    current_code,
    family_of,
)
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import did_you_mean, quantity
from pytest_ttnn_perf.report.findings import progress_of
from pytest_ttnn_perf.report.tables import BELOW, DROPPED, NAME, Column, Columns, Listing, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import StepTime
    from pytest_ttnn_perf.analysis.show.groups import Analysis
    from pytest_ttnn_perf.analysis.show.kernels import Goals
    from pytest_ttnn_perf.cli.common import Capture
    from pytest_ttnn_perf.core.finding import Finding, Rule, Subject
    from pytest_ttnn_perf.core.observation import JudgedTest, Run
    from pytest_ttnn_perf.core.settings import Settings

_FILES: Final = (
    "an ops_perf_results CSV, a report database, output of tt-lang, or a folder with one"
)


#: What can be looked at: known without reading the code that looks.
ANALYSIS_NAMES: Final = (
    *("dtype", "fidelity", "layout", "padding", "sharding", "reshards", "memory", "host-overhead"),
    *("trace", "queues", "conv", "matmul", "devices", "cores", "dram", "bottlenecks"),
    "l1",
)


def add_analyze(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf analyze WHAT FILE [FILE ...] [options]"
    add = partial(add_argument, parser)
    add("what WHAT", ", ".join(ANALYSIS_NAMES))
    add("files FILE", _FILES, nargs="*")
    add_captures(parser)
    add_format(parser)
    parser.set_defaults(files_anywhere=True)


def run_analyze(options: argparse.Namespace) -> Result:
    """Show the numbers behind one topic of the optimization checklist.

    Files of different kinds are analysed together.
    """
    name = options.what
    if name not in ANALYSES:
        hint = did_you_mean(name, ANALYSES) or f"; analyses: {', '.join(ANALYSES)}"
        raise UsageError(f"{name}: there is no such analysis{hint}")
    capture = capture_of(options, options.files)
    listing = analysis_listing(_analyses_of(capture.read(options), name))
    return Result(capture.listed(listing).text(options.format))


#: Analyses that look at several steps, or at devices side by side.
_OF_ALL_STEPS: Final = frozenset({"devices", "host-overhead", "trace", "queues"})


def _analyses_of(subject: Subject, name: str) -> list[tuple[str, Analysis]]:
    """Analyse each region; without ops, once and of no region.

    Most are of one step alone, on its critical device.
    """
    kind, found = ANALYSES[name], []
    for each in in_regions(subject) if Input.OPS in kind.needs else (trusted(subject),):
        own = each
        if each.ops is not None and each.ops.devices and name not in _OF_ALL_STEPS:
            own = replace(each, ops=critical_step_of(each.ops))
        found.append((each.region, kind.analysis(own)))
    return found


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf check FILE [FILE ...] [options]"
    add = partial(add_argument, parser)
    add("files FILE", _FILES, nargs="*")
    add_captures(parser)
    add("--select CODES", "only these rules or prefixes, such as TTP6")
    add("--ignore CODES", "all but these rules")
    add("--all", "also show small savings, and what other rules need")
    add_format(parser)
    parser.set_defaults(files_anywhere=True)


def run_check(options: argparse.Namespace) -> Result:
    """Apply the optimization checklist to the captures of one program.

    It says what could be faster, what that would save, and how to fix it.
    """
    settings = project_settings()
    select = _codes("select", options.select) or settings.select
    ignore = _codes("ignore", options.ignore) or settings.ignore
    settings = replace(settings, select=select, ignore=ignore)
    if not rules_of(settings):
        names = ", ".join(select)
        raise UsageError(f"select: {names}: rules of other plugins are asked only in test runs")
    capture = capture_of(options, options.files)
    found = checked(capture.read(options), settings, options.region)
    if select or ignore:  # the other steps were not looked at
        found = replace(found, progress=None, goals=())
    # Who names rules wants to see what they say.
    hide = not options.all and not options.select
    listing = capture.listed(checklist_listing(found, hide_quiet=hide))
    failed = any(finding.fails for finding in found.findings)
    return Result(listing.text(options.format), failed=failed)


def rules_of(settings: Settings) -> list[Rule]:
    groups = select_rules(settings.select, settings.ignore, settings.rules)
    return sorted((rule for group in groups for rule in group.rules), key=attrgetter("code"))


def checked(subject: Subject, settings: Settings, region: str | None = None) -> Checklist:
    findings = _findings_of(subject, settings)
    bottleneck, kind = held_back(subject, settings.rules)
    progress = progress_of(findings, has_baseline=None, kind=kind)
    doubt = trusted(subject).absent.get(Input.OPS)
    goals: tuple[Goals, ...] = ()
    if subject.kernels is not None and subject.ops is None:
        goals = goals_of(subject.kernels, subject.facts, findings)
    times = _region_times(subject, region)
    return Checklist(findings, *times, bottleneck, progress, doubt, goals)


def _findings_of(subject: Subject, settings: Settings) -> tuple[Finding, ...]:
    waived = {code for code, rule in settings.rules.items() if rule.waive}
    return as_configured(run_in_regions(rules_of(settings), subject, waived), settings.rules)


def _region_times(subject: Subject, name: str | None) -> tuple[tuple[StepTime, ...], Outside]:
    subject = trusted(subject)
    if subject.ops is None:
        return (), Outside()
    ops, found = subject.ops, regions_of(subject.ops)
    times = (
        replace(step_time(ops, region), region=name or region.name, gaps_ns=told_gaps_ns(part))
        for region, part in zip(found.regions, in_regions(subject), strict=True)
    )
    return tuple(times), found.outside


def _codes(option: str, text: str | None) -> tuple[str, ...]:
    named = (code.strip().upper() for code in (text or "").split(",") if code.strip())
    found = tuple(map(current_code, named))
    if text is not None and not found:
        raise UsageError(f"expected codes of rules, such as TTP6,TTP203, found {text!r}")
    for code in found:
        if not any(known.startswith(code) for known in codes()):
            message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
            raise UsageError(message)
    return found


def add_rules(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "code CODE", "the code or the name of a rule, such as TTP203", nargs="?")
    add_format(parser)


_RULES: Final[Columns[Rule]] = Columns(
    Column("code", lambda rule: rule.code, "code"),
    Column("name", lambda rule: rule.name, "name", fit=NAME),
    Column("severity", lambda rule: rule.severity.value, "severity"),
    Column("step", lambda rule: rule.step, "step", fit=DROPPED[1]),
    Column("finds", lambda rule: rule.page.partition("\n")[0], "finds", fit=BELOW),
)


def run_rules(options: argparse.Namespace) -> Result:
    """List the rules of the optimization checklist, or explain one of them."""
    rules, code = all_rules(), options.code
    if code is None:
        document = {"rules": _RULES.objects(rules)}
        listing = Listing(tuple(_RULES.table(rules)), document, _RULES.names, _RULES.rows(rules))
        return Result(listing.text(options.format))
    for rule in rules:
        if current_code(code.upper()) in {rule.code, rule.name.upper()}:
            return Result(_rule_listing(rule).text(options.format))
    message = f"no rule is called {code!r}; `ttnn-perf rules` lists them"
    message += did_you_mean(code.upper(), [rule.code for rule in rules])
    raise UsageError(message)


def _rule_listing(rule: Rule) -> Listing:
    first = {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "step": rule.step,
    }
    limits = [
        {"name": name, "default": float(limit.value), "unit": limit.unit, "source": limit.source}
        for name, limit in rule.limits.items()
    ]
    headings = (*first, "limit", "default", "unit", "from")
    cells = [tuple(limit.values()) for limit in limits] or [("",) * 4]
    rows = tuple((*first.values(), *each) for each in cells)
    document = {**first, "text": rule.page, "limits": limits}
    return Listing(tuple(rule_lines(rule)), document, headings, rows)


def rule_lines(rule: Rule) -> Iterator[str]:
    yield f"# {rule.code} {rule.name}"
    yield ""
    yield from f"{rule.severity.value}, {rule.step}. {rule.page}".splitlines()
    if rule.limits:
        yield from ("", "## Limits", "", f"Set in `[tool.ttnn_perf.rules.{rule.code}]`.", "")
        yield from ("| limit | default | unit | from |", "|---|---|---|---|")
        for name, limit in rule.limits.items():
            yield f"| `{name}` | {float(limit.value):g} | {limit.unit} | {limit.source} |"
    report = _TECH_REPORTS.get(family_of(rule.code))
    if report is not None:
        name = report.rpartition("/")[2]
        yield from ("", f"See tt-metal's tech report [{name}]({_TT_METAL}/{report}.md).")


_TT_METAL: Final = "https://github.com/tenstorrent/tt-metal/blob/main/tech_reports"
_ADVANCED: Final = "/".join(["AdvancedPerformanceOptimizationsForModels"] * 2)
#: What tt-metal itself says about the subject of a family.
_TECH_REPORTS: Final = {
    Family.FORMATS: "data_formats/data_formats",
    Family.LAYOUTS: "tensor_layouts/tensor_layouts",
    Family.MEMORY: "tensor_sharding/tensor_sharding",
    Family.HOST: _ADVANCED,
    Family.QUEUES: _ADVANCED,
    Family.CONVOLUTIONS: "CNNs/ttcnn",
    Family.DEVICES: "Programming_Mesh_of_Devices/Programming_Mesh_of_Devices_with_TT-NN",
}


def add_plan(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf plan [FILE ...] [TEST ...] [options]"
    add = partial(add_argument, parser)
    add("files FILE", f"{_FILES}; or a run record, and tests in it: ids, folders, patterns",
        nargs="*")  # fmt: skip
    add_captures(parser)
    add("--target TIME", "what a step should take, such as '12 ms'")
    add_format(parser)
    parser.set_defaults(files_anywhere=True)


def run_plan(options: argparse.Namespace) -> Result:
    """Make a plan of the findings of captures or recorded tests.

    It says what to do first, what each step saves, and whether a target is in reach: exit 1 where
    --target is not. Without a file, the newest run record is taken.
    """
    target_ns = _target_ns(options.target)
    settings = project_settings()
    chosen = _record_and_tests(options)
    note = ""
    subject: Subject | None = None
    if chosen is None:
        capture = capture_of(options, options.files)
        subject = capture.read(options)
        log = subject.kernels
        if log is not None and subject.ops is None and log.auto_profiles:
            if target_ns is not None:
                raise UsageError("--target is a time, and an auto-profile has cycles alone")
            if not _doubt(_findings_of(subject, settings)):
                return Result(cycle_plan(log, subject.facts).text(options.format))
        planned = list(_plan(capture, subject, settings, options))
    else:
        file, tests = chosen
        if file is None:
            file = newest_record(settings)
            if file is None:
                raise UsageError(
                    "nothing to plan: no run is recorded here: make one with pytest --ttnn-perf, "
                    "or name a capture or a run record"
                )
            note = f"ttnn-perf: the newest run record: {file}\n"
        planned = _of_run(read_run(file), tests, file.name)
        if not planned:
            raise InputError(file, "expected a run record with tests, found none in it")
    if target_ns is not None:
        planned = _aimed(planned, target_ns)
    listing = plan_listing(planned)
    if subject is not None and subject.kernels is not None and any(one.plan for one in planned):
        listing = replace(listing, lines=(*listing.lines, *questions(subject.facts)))
    text = listing.text(options.format)
    inconclusive = all(one.plan is None for one in planned)
    out_of_reach = {Chance.BEYOND, Chance.NEVER}
    failed = target_ns is not None and any(
        aim.chance in out_of_reach for one in planned for aim in one.aims
    )
    return Result(text, failed=failed, inconclusive=inconclusive, errors=note)


def _target_ns(text: str | None) -> float | None:
    if text is None:
        return None
    found = quantity(text, unit="ns") if any(map(str.isalpha, text)) else None
    if found is None or not 0 < found < inf:
        message = f"--target: expected a time with its unit, such as '12 ms', found {text!r}"
        raise UsageError(message)
    return found


def _aimed(planned: Sequence[RegionPlan], target_ns: float) -> list[RegionPlan]:
    made = [one for one in planned if one.plan is not None]
    if len(made) > 1:
        message = f"--target is of one plan, and there are {len(made)}: name a test, or a --region"
        raise UsageError(message)
    return [
        replace(one, aims=(reach_of(one.plan, target_ns),)) if one.plan else one for one in planned
    ]


def _record_and_tests(options: argparse.Namespace) -> tuple[Path | None, list[str]] | None:
    """Find a run record and tests in words; None for captures.

    Words that name tests alone are of the newest record, which is None here.
    """
    words: list[str] = options.files
    others = [word for word in words if "::" not in word and not word.endswith(".py")]
    files = [word for word in others if Path(word).is_file()]
    kinds = {ArtifactKind.RUN_RECORD, ArtifactKind.BENCHMARK_JSON}
    records = [word for word in files if kind_of(Path(word)) in kinds]
    if options.csv or options.db or options.log or (others and not records):
        return None
    captures = [word for word in files if word not in records]
    if len(records) > 1 or captures:
        found = ", ".join([*records, *captures])
        raise UsageError(f"expected captures, or one run record and tests in it, found {found}")
    if options.region or options.start or options.end:
        raise UsageError("--region, --start and --end select ops of a capture, and there is none")
    tests = [word for word in words if word not in records]
    return Path(records[0]) if records else None, tests


def _plan(
    capture: Capture, subject: Subject, settings: Settings, options: argparse.Namespace
) -> Iterator[RegionPlan]:
    """Plan each region of a capture, in the order of ``check``."""
    findings = _findings_of(subject, settings)
    doubt = _doubt(findings)
    if doubt:
        yield RegionPlan("", why_not=doubt)
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
            yield RegionPlan("", why_not=part.absent.get(Input.OPS, why))
            continue
        own = [one for one in findings if one.region == part.region or len(parts) == 1]
        start = replace(start, region=options.region or start.region)
        silent = {one.code for one in own if one.outcome is RuleOutcome.NOT_MEASURED}
        yield RegionPlan("", plan_of(own, start), unanswered=len(silent), look=look)


def _doubt(findings: Iterable[Finding]) -> str:
    for finding in findings:
        if finding.fails and Family.VALIDITY.has(finding.code):
            return f"{finding.code} {finding.name}: {finding.reason}: its numbers cannot be trusted"
    return ""


def _of_run(run: Run, words: Sequence[str], name: str) -> list[RegionPlan]:
    tests = select_tests(tuple(run.tests), words, where=name)
    planned = [one for test in tests for one in _of_test(run.tests[test], run)]
    if len(tests) == 1 and words:
        planned = [replace(one, source="") for one in planned]
    return sorted(
        planned, key=lambda one: one.plan.left_ns / one.plan.start.now_ns if one.plan else inf
    )


def _of_test(judged: JudgedTest, run: Run) -> Iterator[RegionPlan]:
    observation = judged.observation
    doubt = _doubt(observation.findings)
    if doubt:
        yield RegionPlan(observation.test, why_not=doubt)
        return
    hardware = observation.hardware or run.hardware
    starts = list(starts_of_test(observation, hardware.arch if hardware else None))
    silent = {code for each in observation.unanswered for code in each.codes}
    for start in starts:
        own = [one for one in observation.findings if one.region == start.region]
        plan = plan_of(own, start)
        aims = tuple(reaches_of(observation, own, plan, alone=len(starts) == 1))
        look = "profile it, and ttnn-perf check its capture --all"
        yield RegionPlan(observation.test, plan, aims, unanswered=len(silent), look=look)
    if not starts:
        why = (
            "the record has no device times and no finding with a saving: profile it, see "
            "ttnn-perf doctor"
        )
        yield RegionPlan(observation.test, why_not=why)
