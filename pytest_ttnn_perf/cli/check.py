"""``ttnn-perf check``: the optimization checklist on artifacts."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.captures.detect import op_table_of
from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.captures.ttlang_log import read_ttlang_log
from pytest_ttnn_perf.analysis.checklist.progress import bottleneck_of, model_kind, progress_of
from pytest_ttnn_perf.analysis.checklist.runner import as_configured, run_rules, select_rules
from pytest_ttnn_perf.cli.shared import project_settings
from pytest_ttnn_perf.records.finding import Subject
from pytest_ttnn_perf.report.checklist import checklist_listing
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.finding import Finding
    from pytest_ttnn_perf.records.settings import RuleSettings


def artifacts_of(options: argparse.Namespace) -> Artifacts:
    """Return what the options name."""
    return Artifacts(options.csv, options.db, options.log, options.start, options.end)


def run(options: argparse.Namespace) -> Result:
    """Ask the rules."""
    settings = project_settings()
    return check_artifacts(
        artifacts_of(options),
        select=codes(options.select) or settings.select,
        ignore=codes(options.ignore) or settings.ignore,
        rules=settings.rules,
        shape=options.format,
    )


def codes(text: str | None) -> tuple[str, ...]:
    """Return the codes in a list with commas.

    Raises:
        UsageError: the list is empty.
    """
    found = tuple(code.strip().upper() for code in (text or "").split(",") if code.strip())
    if text is not None and not found:
        message = f"expected codes of rules, such as TTP6,TTP203, found {text!r}"
        raise UsageError(message)
    return found


@dataclass(frozen=True, slots=True)
class Artifacts:
    """What is checked; at least one of them."""

    csv: Path | None = None
    db: Path | None = None
    log: Path | None = None
    start: str | None = None
    end: str | None = None


def check_artifacts(
    artifacts: Artifacts,
    *,
    select: Sequence[str],
    ignore: Sequence[str],
    rules: Mapping[str, RuleSettings],
    shape: str,
) -> Result:
    """Ask the rules; an error that is found fails.

    Raises:
        InputError: an artifact is not what it should be.
        UsageError: nothing to look at, or a rule or window that does not exist.
    """
    subject = subject_of(artifacts)
    findings = checked(subject, select=select, ignore=ignore, rules=rules)
    bottleneck = bottleneck_of(subject)
    kind = model_kind(subject.ops, bottleneck)
    # Of steps that nobody asked for, nothing is known.
    everything = not select and not ignore
    progress = progress_of(findings, has_baseline=None, kind=kind) if everything else None
    sentence = bottleneck.sentence if bottleneck else None
    listing = checklist_listing(findings, bottleneck=sentence, progress=progress)
    return Result(listing.text(shape), failed=any(finding.fails for finding in findings))


def subject_of(artifacts: Artifacts) -> Subject:
    """Read artifacts.

    Raises:
        InputError: one is not what it should be.
        UsageError: there is none, or it does not have the window.
    """
    if artifacts.csv is None and artifacts.db is None and artifacts.log is None:
        message = "nothing to look at: name --csv, --db or --log"
        raise UsageError(message)
    ops = report = kernels = None
    if artifacts.csv is not None:
        ops = op_table_of(artifacts.csv, start=artifacts.start, end=artifacts.end)
    if artifacts.db is not None:
        report = read_report_db(artifacts.db)
    if artifacts.log is not None:
        kernels = read_ttlang_log(artifacts.log)
    return Subject(ops=ops, report=report, kernels=kernels)


def checked(
    subject: Subject,
    *,
    select: Sequence[str],
    ignore: Sequence[str],
    rules: Mapping[str, RuleSettings],
) -> tuple[Finding, ...]:
    """Ask the select_rules rules.

    Raises:
        UsageError: a rule or limit that does not exist.
    """
    groups = select_rules(select, ignore, rules)
    by_code = sorted((rule for group in groups for rule in group.rules), key=attrgetter("code"))
    return as_configured(run_rules(by_code, subject), rules)
