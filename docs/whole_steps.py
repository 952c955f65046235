"""What plans promised of whole steps, beside what was gained by working on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import microseconds
from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.checklist.plan import Span, plan_of
from pytest_ttnn_perf.analysis.checklist.plan_start import start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, in_regions, run_rules
from pytest_ttnn_perf.records.finding import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_ttnn_perf.analysis.checklist.plan import Plan

INTRODUCTION: Final = """\

## Whole steps

What a [plan](../explanation/plan.md) promises where somebody has gone on working on a region: of a
capture before, the findings that save less in the one after it, and of these the difference. The
gain is that of the whole step, gaps included, so that all else that was changed is in it too. The
later OFT samples features in another way: its regions gain more than their findings promised.

| region | captures | findings | predicted | 80 % interval | gained | |
|---|---|---|---:|---:|---:|---|
"""
_OFT: Final = ("oft_2025_09_v2", "blackhole_oft_conv")
#: A capture before, one after, and a region that both have.
STEPS: Final = (
    (
        "gemma_sliding_decode_replicated_v1",
        "gemma_sliding_decode_final",
        "mc_sliding_attention_decode",
    ),
    *((*_OFT, region) for region in ("resnet_module", "oft_module", "topdown", "head")),
)
#: What changes by less is the same finding.
_NOTHING_NS: Final = 2_000.0
_NONE: Final = Span(0.0, 0.0, 0.0)


def section(folder: Path) -> str:
    """Return the table, as the last part of the page of savings."""
    return INTRODUCTION + "".join(f"{row}\n" for row in rows(folder))


def rows(folder: Path) -> Iterator[str]:
    """Yield a row for each region whose captures are there."""
    for before, after, region in STEPS:
        files = [folder / f"{capture}.csv" for capture in (before, after)]
        if all(file.exists() for file in files):
            old, new = (_plan(file, region) for file in files)
            place = (f"`{region}`", f"`{before}` → `{after}`")
            yield f"| {' | '.join((*place, *_cells(old, new)))} |"


def _cells(old: Plan, new: Plan) -> tuple[str, ...]:
    later = {step.finding.code: step.saves for step in new.steps}
    closed, spans = [], [_NONE]
    for step in old.steps:
        ends = zip(step.saves, later.get(step.finding.code, _NONE), strict=True)
        less = Span(*((was or 0.0) - (now or 0.0) for was, now in ends))
        if (less.estimate_ns or 0.0) > _NOTHING_NS:
            closed.append(step.finding.code)
            spans.append(less)
    low, estimate, high = (sum(end or 0.0 for end in ends) for ends in zip(*spans, strict=True))
    gained = old.start.now_ns - new.start.now_ns
    held = "inside" if low <= gained <= high else "**missed**"
    return (
        ", ".join(closed) or "none",
        microseconds(estimate),
        f"{microseconds(low)} to {microseconds(high)}",
        microseconds(gained),
        held if closed else "promised nothing",
    )


def _plan(file: Path, region: str) -> Plan:
    parts = in_regions(Subject(ops=read_ops_csv(file)))
    (part,) = (each for each in parts if each.region == region)
    start = start_of(part, {})
    assert start is not None
    return plan_of(run_rules(all_rules(), part), start)
