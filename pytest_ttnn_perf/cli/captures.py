"""The words of commands that ask about the optimization checklist."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from math import inf, isnan
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.plan import (
    Planned,
    plan_listing,
    plan_markdown,
    plan_of,
    reach_of,
    reaches_of,
    start_of,
    starts_of_test,
)
from pytest_ttnn_perf.analysis.checklist.progress import progress_of
from pytest_ttnn_perf.analysis.checklist.runner import (
    all_rules,
    as_configured,
    codes,
    in_regions,
    run_in_regions,
    select_rules,
    trusted,
)
from pytest_ttnn_perf.analysis.checklist.savings import told_gaps_ns
from pytest_ttnn_perf.analysis.ops.regions import (
    region_named,
    regions_of,
    slowest_step_of,
    step_time,
)
from pytest_ttnn_perf.analysis.ops.validity import why_invalid
from pytest_ttnn_perf.analysis.readers.detect import (
    OP_TABLES,
    ArtifactKind,
    kind_of,
    op_table_of,
    read_run,
)
from pytest_ttnn_perf.analysis.readers.device_csv import read_device_log
from pytest_ttnn_perf.analysis.readers.graph import read_graph_json
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.analysis.readers.tt_smi import read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import (
    TtlangLog,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_stats, read_sim_trace
from pytest_ttnn_perf.analysis.show.groups import (
    ANALYSES,
    analysis_listing,
    capture_notes,
    overview_listing,
)
from pytest_ttnn_perf.analysis.show.ops import op_listing
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.cli.common import (
    add_artifacts,
    add_format,
    captures_of,
    complaining,
    joined,
    look_at,
    newest_record,
)
from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.finding import Basis, Input, Outside, RuleOutcome
from pytest_ttnn_perf.core.observation import encode_run
from pytest_ttnn_perf.core.ops import category_of, short_code
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted, did_you_mean, quantity
from pytest_ttnn_perf.experiments.try_change import read_steps
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.judging import swept
from pytest_ttnn_perf.report.findings import Checklist, checklist_listing, outside_lines, step_line
from pytest_ttnn_perf.report.sentences import reasons_by_name
from pytest_ttnn_perf.report.sweeps import sweep_lines
from pytest_ttnn_perf.report.tables import (
    BELOW,
    DROPPED,
    METRIC,
    NAME,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    Style,
    format_fraction,
    format_ns,
    format_value,
    id_column,
    stdout_style,
    table_of,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pytest_ttnn_perf.cli.common import Capture
    from pytest_ttnn_perf.core.baseline import Session
    from pytest_ttnn_perf.core.finding import Analysis, Finding, Rule, Severity, StepTime, Subject
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Run
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import RuleSettings, Settings
    from pytest_ttnn_perf.report.tables import Block, Table


# ``ttnn-perf analyze [WHAT] FILE``: how time, bytes and tensors are distributed.


def run_analyze(options: argparse.Namespace) -> Result:
    """Return one analysis of captures, or an overview of all; what cannot be told is no failure.

    Raises:
        InputError: a file is not what it should be.
        UsageError: nothing to look at, or an analysis or a window that does not exist.
    """
    name, files = _name_and_files(options.what, options.files)
    captures = captures_of(options, files)
    found, errors = look_at(captures, lambda capture: _listing(capture, name, options))
    if not found:
        return complaining(Result(""), errors)
    listing = joined(found, several=len(captures) > 1)
    return complaining(Result(listing.text(options.format)), errors)


def _listing(capture: Capture, name: str | None, options: argparse.Namespace) -> Listing:
    subject = capture.read(options)
    if name is not None:
        return analysis_listing(_analyses_of(subject, name))
    chosen = {"--region": options.region, "--start": options.start, "--end": options.end}
    window = [word for option, value in chosen.items() if value for word in (option, value)]
    notes = () if subject.ops is None else tuple(capture_notes(subject.ops))
    more = f"ttnn-perf analyze NAME {shlex.join([*capture.files, *window])}"
    return overview_listing(
        (each for one in ANALYSES for each in _analyses_of(subject, one)), notes, more
    )


def _name_and_files(word: str | None, files: Sequence[str]) -> tuple[str | None, list[str]]:
    """Tell the name of an analysis from a file; a file of such a name needs its folder, as ./l1."""
    late = next((file for file in files if file in ANALYSES and not Path(file).exists()), None)
    if late is not None:
        message = f"name one analysis, before the files: ttnn-perf analyze {late} FILE"
        raise UsageError(message)
    if word is None or word in ANALYSES:
        return word, [*files]
    # What has no suffix and is in no folder, and is not there either, was meant as a name.
    if Path(word).exists() or Path(word).name != word or Path(word).suffix:
        return None, [word, *files]
    near = did_you_mean(word, ANALYSES)
    message = f"{word}: there is no such analysis, and no such file"
    raise UsageError(message + (near or f"; analyses: {', '.join(ANALYSES)}"))


#: Analyses that look at several steps, or at devices side by side.
_OF_ALL_STEPS: Final = frozenset({"devices", "host-overhead", "trace", "queues", "mesh", "overlap"})


def _analyses_of(subject: Subject, name: str) -> list[tuple[str, Analysis]]:
    """Return an analysis of each region; what does not look at ops is made once, of no region.

    Most are of one step alone, on its slowest device.
    """
    kind, found = ANALYSES[name], []
    for each in in_regions(subject) if Input.OPS in kind.needs else (trusted(subject),):
        own = each
        if each.ops is not None and each.ops.devices and name not in _OF_ALL_STEPS:
            own = replace(each, ops=slowest_step_of(each.ops))
        found.append((each.region, kind.analysis(own)))
    return found


# ``ttnn-perf check``: the optimization checklist on artifacts.


def run_check(options: argparse.Namespace) -> Result:
    """Ask the rules about artifacts; an error that is found fails.

    Raises:
        InputError: an artifact is not what it should be.
        UsageError: nothing to look at, or a rule, limit or window that does not exist.
    """
    settings = project_settings()
    select = _codes("select", options.select) or settings.select
    ignore = _codes("ignore", options.ignore) or settings.ignore
    groups = select_rules(select, ignore, settings.rules)
    rules = sorted((rule for group in groups for rule in group.rules), key=attrgetter("code"))
    if not rules:
        names = ", ".join(select)
        message = f"select: {names}: rules of other plugins are asked only in test runs"
        raise UsageError(message)
    captures = captures_of(options, options.files)
    reports, errors = look_at(
        captures,
        lambda each: checked(each.read(options), rules, settings.rules, options.region),
    )
    if not reports:
        return complaining(Result(""), errors)
    if select or ignore:  # of steps that nobody asked for, nothing is known
        reports = [(capture, replace(report, progress=None)) for capture, report in reports]
    # Who names rules wants to see what they say.
    hide = not options.all and not _codes("select", options.select)
    listings = [(capture, checklist_listing(each, hide_quiet=hide)) for capture, each in reports]
    listing = joined(listings, several=len(captures) > 1)
    failed = [
        capture.name
        for capture, report in reports
        if any(finding.fails for finding in report.findings)
    ]
    if len(captures) > 1:
        told = f"errors in {', '.join(failed)}" if failed else "no errors"
        told += f"; {len(errors)} could not be read" if errors else ""
        listing = replace(listing, lines=(*listing.lines, "", f"{len(captures)} captures: {told}"))
    return complaining(Result(listing.text(options.format), failed=bool(failed)), errors)


def checked(
    subject: Subject,
    rules: Sequence[Rule],
    settings: Mapping[str, RuleSettings],
    region: str | None,
) -> Checklist:
    """Return what rules say of artifacts, as the project configures them."""
    waived = {code for code, rule in settings.items() if rule.waive}
    findings = as_configured(run_in_regions(rules, subject, waived), settings)
    bottleneck, kind = held_back(subject, settings)
    progress = progress_of(findings, has_baseline=None, kind=kind)
    doubt = trusted(subject).absent.get(Input.OPS)
    return Checklist(findings, *region_times(subject, region), bottleneck, progress, doubt)


def region_times(subject: Subject, name: str | None) -> tuple[tuple[StepTime, ...], Outside]:
    """Return what a step of each region takes, and what is in none; ``name`` is of a chosen one."""
    subject = trusted(subject)
    if subject.ops is None:
        return (), Outside()
    ops, found = subject.ops, regions_of(subject.ops)
    parts = zip(found.regions, in_regions(subject), strict=True)
    times = (
        replace(step_time(ops, region), region=name or region.name, gaps_ns=told_gaps_ns(part))
        for region, part in parts
    )
    return tuple(times), found.outside


def _codes(option: str, text: str | None) -> tuple[str, ...]:
    """Return the codes in a list with commas, of which one that is given must have some."""
    found = tuple(code.strip().upper() for code in (text or "").split(",") if code.strip())
    if text is not None and not found:
        message = f"expected codes of rules, such as TTP6,TTP203, found {text!r}"
        raise UsageError(message)
    for code in found:
        if not any(known.startswith(code) for known in codes()):
            message = f"{option}: no rule begins with {code!r}; `ttnn-perf rules` lists them"
            raise UsageError(message)
    return found


# ``ttnn-perf rules [CODE]``: the optimization checklist, explained.


def run_rules(options: argparse.Namespace) -> Result:
    """Return all rules, or one of them with its page.

    Raises:
        UsageError: there is no such rule.
    """
    pages, code = rule_pages(), options.code
    if code is None:
        return Result(rules_listing(pages).text(options.format))
    for page in pages:
        if code.upper() in {page.code, page.name.upper()}:
            return Result(rule_listing(page).text(options.format))
    message = f"no rule is called {code!r}; `ttnn-perf rules` lists them"
    message += did_you_mean(code.upper(), [page.code for page in pages])
    raise UsageError(message)


class LimitRow(Struct, frozen=True):
    """A limit of a rule, and where its figure comes from."""

    name: str
    default: float
    unit: str
    source: str


class RulePage(Struct, frozen=True):
    """All that is known of a rule; ``text`` is Markdown, its first line what the rule finds."""

    code: str
    name: str
    severity: Severity
    step: str
    text: str
    limits: tuple[LimitRow, ...] = ()

    @property
    def summary(self) -> str:
        """What it finds, in one line."""
        return self.text.partition("\n")[0]

    def markdown(self) -> str:
        """Return the page as it is published."""
        return "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the page, in Markdown."""
        yield f"# {self.code} {self.name}"
        yield ""
        yield from f"{self.severity.value}, {self.step}. {self.text}".splitlines()
        if self.limits:
            yield ""
            yield "## Limits"
            yield ""
            yield f"Set in `[tool.ttnn_perf.rules.{self.code}]`."
            yield ""
            yield "| limit | default | unit | from |"
            yield "|---|---|---|---|"
            for row in self.limits:
                yield f"| `{row.name}` | {row.default:g} | {row.unit} | {row.source} |"


def rules_listing(pages: Sequence[RulePage]) -> Listing:
    """Lay all rules out."""
    columns: Columns[RulePage] = Columns(
        Column("code", lambda page: page.code, "code"),
        Column("name", lambda page: page.name, "name", fit=NAME),
        Column("severity", lambda page: page.severity.value, "severity"),
        Column("step", lambda page: page.step, "step", fit=DROPPED[1]),
        Column("finds", lambda page: page.summary, "finds", fit=BELOW),
    )
    document = {"rules": columns.objects(pages)}
    return Listing(tuple(columns.table(pages)), document, columns.names, columns.rows(pages))


def rule_listing(page: RulePage) -> Listing:
    """Lay one rule out with its page."""
    headings = ("code", "name", "severity", "step", "limit", "default", "unit", "from")
    first = (page.code, page.name, page.severity.value, page.step)
    rows = tuple((*first, *asdict(row).values()) for row in page.limits) or ((*first, *[""] * 4),)
    document = to_builtins(page)
    return Listing(tuple(page.lines()), document, headings, rows)


def rule_pages() -> tuple[RulePage, ...]:
    """Return what is known of every rule."""
    return tuple(
        RulePage(
            rule.code,
            rule.name,
            rule.severity,
            rule.step,
            rule.page,
            tuple(
                LimitRow(name, float(limit.value), limit.unit, limit.source)
                for name, limit in rule.limits.items()
            ),
        )
        for rule in all_rules()
    )


# ``ttnn-perf plan``: what was found, as steps with what each saves.


def run_plan(options: argparse.Namespace) -> Result:
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


# ``ttnn-perf show FILE``: what a run record or a capture holds.


class _Group(Struct, frozen=True):
    """Ops of one code, over all devices."""

    op: str
    category: str
    times_ns: Sequence[float]
    share: float
    cores: tuple[int, int] | None

    @property
    def total_ns(self) -> float:
        return sum(self.times_ns)

    @property
    def median_ns(self) -> float:
        return median(self.times_ns)

    @property
    def cores_text(self) -> str:
        low, high = self.cores or (0, 0)
        return "-" if self.cores is None else str(low) if low == high else f"{low}-{high}"


_OP_COLUMNS: Final[Columns[_Group]] = Columns(
    Column("op", lambda g: g.op, "op", fit=NAME, short=lambda g: short_code(g.op)),
    Column("category", lambda g: g.category, "category", fit=DROPPED[2]),
    Column("count", lambda g: len(g.times_ns), "count", right=True),
    Column("total_ns", lambda g: g.total_ns, "total", lambda g: format_ns(g.total_ns), right=True),
    Column("share", lambda g: g.share, "share", lambda g: f"{g.share * 100:.1f} %", right=True),
    Column("median_ns", lambda g: g.median_ns, "median", lambda g: format_ns(g.median_ns),
           right=True, fit=DROPPED[1]),
    Column("cores", lambda g: list(g.cores) if g.cores else None, "cores", lambda g: g.cores_text,
           right=True, fit=DROPPED[3]),
)  # fmt: skip


def ops_listing(table: OpTable, *, name: str) -> Listing:
    """Lay out the op table of the file ``name``."""
    groups, invalid = _groups(table), why_invalid(table)
    arch = f", {table.arch}" if table.arch else ""
    devices = counted(len(table.devices), "device")
    lines: list[Block] = [
        f"{name}: {table.format}{arch}; {counted(len(table), 'op')} on {devices}",
        *([f"no number of it can be trusted: {invalid}"] if invalid else ()),
        "",
    ]
    if groups:
        lines += [*_OP_COLUMNS.table(groups), "", _categories(groups), ""]
    lines += _notes(table)
    document = {
        "format": table.format,
        "arch": table.arch,
        "rows": table.rows,
        "ops": len(table),
        "dropped": dict(table.dropped),
        "invalid": invalid,
        "devices": list(table.devices),
        "device_kernel_time_ns": {str(d): ns for d, ns in table.kernel_ns_by_device.items()},
        "traces": [
            {"device": t.device, "trace": t.trace, "replays": t.replays, "complete": t.complete}
            for t in table.traces
        ],
        "regions": [to_builtins(each) for each in _step_times(table)],
        "signposts": [{"name": s.name, "position": s.position} for s in table.signposts],
        "by_op": _OP_COLUMNS.objects(groups),
    }
    rows = tuple(
        (*row[:-1], "-".join(map(str, group.cores or ())))
        for row, group in zip(_OP_COLUMNS.rows(groups), groups, strict=True)
    )
    return Listing(tuple(lines), document, _OP_COLUMNS.names, rows)


def _groups(table: OpTable) -> list[_Group]:
    columns = table.columns
    times: dict[str, list[float]] = defaultdict(list)
    cores: dict[str, set[int]] = defaultdict(set)
    names = [signature.op for signature in table.signatures]
    for index, kernel_ns, count in zip(
        columns.signature, columns.kernel_ns, columns.cores, strict=True
    ):
        times[names[index]].append(kernel_ns)
        if count is not None:
            cores[names[index]].add(count)
    whole = sum(columns.kernel_ns) or 1.0
    groups = [
        _Group(
            op,
            category_of(op).value,
            own,
            sum(own) / whole,
            (min(cores[op]), max(cores[op])) if cores[op] else None,
        )
        for op, own in times.items()
    ]
    return sorted(groups, key=lambda group: (-group.total_ns, group.op))


def _categories(groups: Sequence[_Group]) -> str:
    shares: dict[str, float] = defaultdict(float)
    for group in groups:
        shares[group.category] += group.share
    parts = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return "by category: " + ", ".join(f"{name} {share * 100:.1f} %" for name, share in parts)


def _step_times(table: OpTable) -> Iterator[StepTime]:
    for region in regions_of(table).regions:
        yield step_time(table, region)


def _notes(table: OpTable) -> Iterator[str]:
    outside = regions_of(table).outside
    for time in _step_times(table):
        if time.basis is not Basis.WHOLE or outside.ops:
            yield f"region {step_line(time)}"
    yield from outside_lines(outside)
    totals = [f"{d}: {format_ns(ns)}" for d, ns in table.kernel_ns_by_device.items()]
    if totals:
        yield "kernel time by device: " + ", ".join(totals)
    for trace in table.traces:
        state = "complete" if trace.complete else "INCOMPLETE: replays ran different ops"
        replays = counted(trace.replays, "replay")
        yield f"trace {trace.trace} on device {trace.device}: {replays}, {state}"
    if table.signposts:
        marks = ", ".join(f"{mark.name} (after {mark.position})" for mark in table.signposts[:20])
        more = len(table.signposts) - 20
        yield f"signposts: {marks}" + (f", and {more} more" if more > 0 else "")
    reasons = ", ".join(f"{count} {reason}" for reason, count in table.dropped.items() if count)
    yield f"rows: {table.rows}; dropped: {reasons or 'none'}"


class _Measured(Struct, frozen=True):
    """A metric of a test in a run; ``session`` is None without a finite sample."""

    test: str
    observed: MetricObservation
    session: Session | None
    outcome: str | None

    @property
    def median(self) -> float | None:
        return self.session.median if self.session else None

    @property
    def spread(self) -> float | None:
        several = self.session is not None and self.session.n > 1 and self.session.median
        return self.session.mad / abs(self.session.median) if self.session and several else None


_RUN_COLUMNS: Final[Columns[_Measured]] = Columns(
    id_column(lambda m: m.test),
    Column("metric", lambda m: m.observed.metric.name, "metric", fit=METRIC),
    Column("median", lambda m: m.median, "median",
           lambda m: format_value(m.observed.metric, m.median), right=True),
    Column("mad", lambda m: m.session and m.session.mad, "spread",
           lambda m: format_fraction(m.spread), right=True, fit=DROPPED[2]),
    Column("n", lambda m: len(m.observed.samples), "samples", right=True, fit=DROPPED[1]),
    Column("unit", lambda m: m.observed.metric.unit),
    Column("source", lambda m: m.observed.metric.source.value),
    Column("gated", lambda m: m.observed.gated),
    Column("outcome", lambda m: m.outcome, "verdict",
           lambda m: m.outcome or ("-" if m.observed.gated else "recorded only")),
)  # fmt: skip


def run_listing(run: Run) -> Listing:
    """Lay out what a run record holds."""
    found = [
        measured for name, judged in run.tests.items() for measured in _metrics_of(name, judged)
    ]
    raised = [
        f"{name} raised {judged.observation.raised}"
        for name, judged in run.tests.items()
        if judged.observation.raised is not None
    ]
    raised += [
        f"{name} ran out of memory: {judged.observation.out_of_memory}"
        for name, judged in run.tests.items()
        if judged.observation.out_of_memory is not None
    ]
    why = reasons_by_name(measured.observed for measured in found)
    sweeps = list(swept(run.tests.values()))
    lines: list[Block] = [*_run_heading(run), *_RUN_COLUMNS.table(found), *raised, *why]
    if sweeps:
        lines += ["", *(line for one in sweeps for line in sweep_lines(one))]
    document = encode_run(run) | ({"sweeps": [encode(each) for each in sweeps]} if sweeps else {})
    return Listing(tuple(lines), document, _RUN_COLUMNS.names, _RUN_COLUMNS.rows(found))


def _metrics_of(test: str, judged: JudgedTest) -> Iterator[_Measured]:
    outcomes = {verdict.metric.name: verdict.outcome.value for verdict in judged.verdicts}
    for name, observed in judged.observation.metrics.items():
        finite = tuple(sample for sample in observed.samples if not isnan(sample))
        session = session_of(observed, finite) if finite else None
        yield _Measured(test, observed, session, outcomes.get(name))


def _run_heading(run: Run) -> Iterator[str]:
    environment = run.environment
    parts = {
        "run": run.id,
        "label": run.label,
        "key": run.hardware.key if run.hardware else None,
        "started": environment.started_at,
        "commit": environment.commit,
        "python": environment.python,
        "ttnn": environment.ttnn,
        "cpu": environment.cpu,
    }
    for name, value in parts.items():
        if value is not None:
            dirty = " (dirty)" if name == "commit" and environment.dirty else ""
            yield f"{name}: {value}{dirty}"
    yield f"tests: {len(run.tests)}" + ("" if run.complete else " (the run was cut short)")


#: What a terminal shows of a long list; JSON and CSV have all of it.
_MOST_ROWS: Final = 40
_WIDEST: Final = 48
_MOST_HOT: Final = 10


def record_listing(record: object, *, name: str, kind: str) -> Listing:
    """Lay out the record that was read from the file ``name``, which is ``kind``."""
    content = plain(record)
    document = {"kind": kind, **(content if isinstance(content, dict) else {"value": content})}
    lines: list[Block] = [f"{name}: {kind}"]
    rows: list[dict[str, Any]] = []
    for place, value in _sections("", {f: v for f, v in document.items() if f != "kind"}):
        if _is_table(value):
            lines += ["", f"{place}:", *_table(value)]
            rows = rows or value
        elif value not in (None, [], {}, ""):
            lines.append(f"{place}: {_cell(value, widest=10 * _WIDEST)}")
    headings = tuple(dict.fromkeys(column for row in rows for column in row))
    cells = tuple(
        tuple(_text(cell) if isinstance(cell, (dict, list)) else cell for cell in values)
        for values in ([row.get(column) for column in headings] for row in rows)
    )
    return Listing(tuple(lines), document, headings, cells)


def _sections(place: str, members: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, and after each table the tables that stand in its rows."""
    for field, value in members.items():
        path = f"{place} {field}".strip()
        rows = list(value.values()) if isinstance(value, dict) else value
        if not _is_table(rows):
            yield path, value
            continue
        inner = {column for row in rows for column, cell in row.items() if _is_table(cell)}
        yield path, [{c: v for c, v in row.items() if c not in inner} for row in rows]
        for number, row in enumerate(rows[:_MOST_ROWS], start=1):
            nested = {column: row[column] for column in row if column in inner}
            yield from _sections(f"{path} {number}", nested)


def plain(value: object) -> Any:
    """Return records, enums and tuples as plain JSON."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {field: plain(member) for field, member in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, frozenset, set)):
        return [plain(member) for member in value]
    return value


def _is_table(value: object) -> bool:
    """Return whether a value is a list of objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(rows: list[dict[str, Any]]) -> list[Block]:
    known = {column for row in rows for column, value in row.items() if value not in (None, [], {})}
    headings = [
        column for column in dict.fromkeys(c for row in rows for c in row) if column in known
    ]
    shown = [[_cell(row.get(column)) for column in headings] for row in rows[:_MOST_ROWS]]
    more = len(rows) - _MOST_ROWS
    table = table_of(headings, shown)
    if len(rows) == 1:  # what is too wide for a line is long enough for a column
        table = replace(table, narrower=lambda: _transposed(headings, shown[0]))
    return [table, f"... and {more} more; --format json has them"] if more > 0 else [table]


def _transposed(headings: Sequence[str], cells: Sequence[str]) -> Table:
    pairs = zip(headings, cells, strict=True)
    return table_of(("field", "value"), list(pairs), fits=(NAME, Fit(least=_WIDEST)))


def _cell(value: object, *, widest: int = _WIDEST) -> str:
    text = _text(value).replace("\n", " ")
    return text if len(text) <= widest else text[: widest - 1] + "…"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        known = {key: member for key, member in value.items() if member is not None}
        return ", ".join(f"{key} {_text(member)}" for key, member in known.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_RECORDS: Final[Mapping[ArtifactKind, Callable[[Path], object]]] = {
    ArtifactKind.DEVICE_LOG: read_device_log,
    ArtifactKind.REPORT_DB: read_report_db,
    ArtifactKind.GRAPH_JSON: read_graph_json,
    ArtifactKind.PERF_SUMMARY_JSON: read_perf_summary_json,
    ArtifactKind.SIM_TRACE: read_sim_trace,
    ArtifactKind.SIM_STATS: read_sim_stats,
    ArtifactKind.TT_SMI: read_tt_smi,
    ArtifactKind.TTLANG_LOG: read_ttlang_log,
}


def show_ops(
    file: Path, *, start: str | None, end: str | None, region: str | None, shape: str
) -> str:
    """Show the ops of a capture one by one, of all regions or of one.

    Raises:
        InputError: the file holds no op table, or is damaged.
        UsageError: a window or a region was named that the file does not have.
    """
    table = op_table_of(file, start=start, end=end)
    name = None if region is None else region_named(table, region, file.name).name
    listing = op_listing(table, name=file.name, style=stdout_style(), region=name)
    return listing.text(shape, Style())  # it is as wide as it may be, and coloured


def show_file(
    file: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
    shape: str,
) -> str:
    """Show what a file holds; of an op table, a window between signposts or a region if named.

    Raises:
        InputError: the file is of no known format, or is damaged.
        UsageError: a window was named that the file does not have.
    """
    kind = presumed_kind_of(file)
    if kind in OP_TABLES:
        table = op_table_of(file, start=start, end=end, region=region)
        return ops_listing(table, name=file.name).text(shape)
    if start or end or region:
        selecting = "--region, --start and --end select ops of an op table"
        message = f"{selecting}; {file.name} is {kind.value}"
        raise UsageError(message)
    if kind is ArtifactKind.RUN_RECORD:
        return run_listing(read_run(file)).text(shape)
    if kind is ArtifactKind.BENCHMARK_JSON:
        from pytest_ttnn_perf.analysis.readers.benchmark_json import read_benchmark_run

        return run_listing(read_benchmark_run(file)).text(shape)
    record = _RECORDS[kind](file)
    listing = record_listing(record, name=file.name, kind=kind.value)
    if isinstance(record, TtlangLog):
        listing = replace(listing, lines=(*listing.lines, *_hot_lines(record)))
    return listing.text(shape)


def _hot_lines(log: TtlangLog) -> Iterator[Block]:
    """Yield the source lines of kernels with most cycles, where a log tells them."""
    from pytest_ttnn_perf.analysis.checklist.kernels import hot_lines

    hottest = hot_lines(log)[:_MOST_HOT]
    if hottest:
        cells = [
            (f"{hot.cycles:,}", f"{hot.share * 100:.1f} %", hot.thread, str(hot.line), hot.source)
            for hot in hottest
        ]
        headings = ("cycles", "of its thread", "thread", "line", "source")
        yield from ("", "hot lines:", table_of(headings, cells, right=frozenset({0, 1, 3})))


def presumed_kind_of(file: Path) -> ArtifactKind:
    """Return the format of a file; unknown JSON counts as a run record, whose reader says more."""
    try:
        return kind_of(file)
    except InputError:
        if Path(file.name.removesuffix(".gz")).suffix in {".json", ".jsonl"}:
            return ArtifactKind.RUN_RECORD
        raise


def run_show(options: argparse.Namespace) -> Result:
    """Return the file's content.

    Raises:
        InputError: it is of no known format, or is damaged.
        UsageError: a window or a region was named that it does not have.
    """
    shown = show_ops if options.ops else show_file
    text = shown(
        options.file,
        start=options.start,
        end=options.end,
        region=options.region,
        shape=options.format,
    )
    return Result(text)


_FILES: Final = (
    "an ops_perf_results CSV, a report database of ttnn, output of tt-lang, or a folder with one "
    "of them; the format is detected"
)


def declare_check(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf check``."""
    parser.description = (
        "Apply the rules of the optimization checklist to what a profiler, ttnn or tt-lang "
        "recorded: what could be faster, what that would save, and how to fix it. Files of "
        "different kinds are checked together, several of one kind one by one."
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help=_FILES)
    add_artifacts(parser)
    parser.add_argument(
        "--select", metavar="CODES", help="only these rules, as codes or prefixes such as TTP6"
    )
    parser.add_argument("--ignore", metavar="CODES", help="all but these rules")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also show what would save less than 1 %% of a step, and what other rules need",
    )
    add_format(parser)
    parser.set_defaults(run="captures:run_check", files_anywhere=True)


def declare_analyze(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf analyze``."""
    from pytest_ttnn_perf.core.finding import NAMES

    parser.description = (
        "Show the numbers behind the optimization checklist, from what a profiler, ttnn or tt-lang "
        "recorded: an overview, or one topic in full. Files of different kinds are analysed "
        "together, several of one kind one by one."
    )
    names = ", ".join(NAMES)
    parser.usage = "ttnn-perf analyze [WHAT] FILE [FILE ...] [options]"
    parser.add_argument("what", metavar="WHAT", nargs="?", help=f"{names} (default: an overview)")
    parser.add_argument("files", metavar="FILE", nargs="*", help=_FILES)
    add_artifacts(parser)
    add_format(parser)
    parser.set_defaults(run="captures:run_analyze", files_anywhere=True)


def declare_plan(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf plan``."""
    parser.description = (
        "Make a plan of the findings of captures, or of tests in a run record: what to do first, "
        "what each step saves, what is left after it, and whether a target is in reach. Without a "
        "file, the newest run record is taken."
    )
    parser.usage = "ttnn-perf plan [FILE ...] [TEST ...] [options]"
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help=f"{_FILES}; or a run record, and tests in it: ids, folders, patterns",
    )
    add_artifacts(parser)
    parser.add_argument("--target", metavar="TIME", help="what a step should take, such as '12 ms'")
    add_format(parser, "markdown")
    parser.set_defaults(run="captures:run_plan", files_anywhere=True)


def declare_rules(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf rules``."""
    parser.description = (
        "List the rules of the optimization checklist, or explain one of them: what it finds, why "
        "that matters, what to do, and its limits."
    )
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="the code or the name of a rule, such as TTP203"
    )
    add_format(parser)
    parser.set_defaults(run="captures:run_rules")
