"""``ttnn-perf check``: the optimization checklist on artifacts."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.progress import progress_of
from pytest_ttnn_perf.analysis.checklist.runner import (
    as_configured,
    codes,
    in_regions,
    run_in_regions,
    select_rules,
    trusted,
)
from pytest_ttnn_perf.analysis.checklist.waiting import told_gaps_ns
from pytest_ttnn_perf.analysis.ops.regions import regions_of, step_time
from pytest_ttnn_perf.cli.artifacts import captures_of, complaining, joined, look_at
from pytest_ttnn_perf.records.finding import Input
from pytest_ttnn_perf.records.region import Outside
from pytest_ttnn_perf.report.checklist import Checklist, checklist_listing
from pytest_ttnn_perf.report.numbers import Result
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Rule
    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.region import StepTime
    from pytest_ttnn_perf.records.settings import RuleSettings


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
