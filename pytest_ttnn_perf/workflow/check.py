"""The checklist over artifacts alone: no test, no hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.capture.report_db import read_report_db
from pytest_ttnn_perf.capture.ttlang import read_ttlang_log
from pytest_ttnn_perf.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.checklist.progress import model_kind, progress_of
from pytest_ttnn_perf.checklist.runner import as_configured, run_rules
from pytest_ttnn_perf.checklist.selection import selected
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.model.subject import Subject
from pytest_ttnn_perf.report.checklist import checklist_listing
from pytest_ttnn_perf.workflow.op_tables import op_table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.model.finding import Finding
    from pytest_ttnn_perf.model.rule_settings import RuleSettings


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
    """Ask the selected rules.

    Raises:
        UsageError: a rule or limit that does not exist.
    """
    return as_configured(run_rules(selected(select, ignore, rules).rules, subject), rules)
