"""``ttnn-perf check``: the optimization checklist on artifacts."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.captures.detect import kernels_in, op_table_of, report_of
from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.progress import progress_of
from pytest_ttnn_perf.analysis.checklist.runner import (
    as_configured,
    codes,
    in_regions,
    run_in_regions,
    select_rules,
)
from pytest_ttnn_perf.analysis.checklist.waiting import told_gaps_ns
from pytest_ttnn_perf.analysis.ops.regions import regions_of, step_time
from pytest_ttnn_perf.records.finding import Subject
from pytest_ttnn_perf.records.region import Outside
from pytest_ttnn_perf.report.checklist import Checklist, checklist_listing
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.records.region import StepTime


def run(options: argparse.Namespace) -> Result:
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
        message = f"select: {names}: rules of other plugins are asked in test runs alone"
        raise UsageError(message)
    subject = read_subject(options)
    waived = {code for code, rule in settings.rules.items() if rule.waive}
    findings = as_configured(run_in_regions(rules, subject, waived), settings.rules)
    bottleneck, kind = held_back(subject, settings.rules)
    # Of steps that nobody asked for, nothing is known.
    progress = None
    if not select and not ignore:
        progress = progress_of(findings, has_baseline=None, kind=kind)
    # Who names rules wants to see what they say.
    hide = not options.all and not _codes("select", options.select)
    report = Checklist(findings, *_regions(subject, options.region), bottleneck, progress)
    listing = checklist_listing(report, hide_quiet=hide)
    return Result(listing.text(options.format), failed=any(finding.fails for finding in findings))


def _regions(subject: Subject, name: str | None) -> tuple[tuple[StepTime, ...], Outside]:
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


def read_subject(options: argparse.Namespace) -> Subject:
    """Read the artifacts that options name.

    Raises:
        InputError: one is not what it should be.
        UsageError: there is none, or it does not have the window.
    """
    if options.csv is None and options.db is None and options.log is None:
        message = "nothing to look at: name --csv, --db or --log"
        raise UsageError(message)
    ops = report = kernels = None
    if options.csv is not None:
        ops = op_table_of(options.csv, start=options.start, end=options.end, region=options.region)
    if options.db is not None:
        report = report_of(options.db)
    if options.log is not None:
        kernels = kernels_in(options.log)
    return Subject(ops=ops, report=report, kernels=kernels)
