"""What plans promised of whole steps, beside what was gained by working on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import microseconds
from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.checklist.plan import Plan, plan_of
from pytest_ttnn_perf.analysis.checklist.plan_start import start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, in_regions, rule_of, run_rules
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops
from pytest_ttnn_perf.analysis.checklist.track_record import PAIRS, spread_from
from pytest_ttnn_perf.analysis.ops.names import op_name
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.records.finding import Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.analysis.checklist.track_record import Pair
    from pytest_ttnn_perf.records.ops import Op, OpTable

INTRODUCTION: Final = """\

## Whole steps

What a [plan](../explanation/plan.md) promises where somebody has gone on working on a region: of a
capture before, the findings that save less in the one after it, and of these the difference. The
intervals rest on pairs of other captures alone. The gain is that of the whole step, gaps included,
so that all else that was changed is in it too. Beside it stands what was gained of the kinds of ops
that these findings name, such as all convolutions. Both are judged.

| region | captures | findings | predicted | 80 % interval | gained | | of ops named | |
|---|---|---|---:|---:|---:|---|---:|---|
"""
MISSED: Final = """\

Both misses are on the high side, and of captures that are months apart. All that findings name in
`oft_module` went, and more: conversions that TTP203 does not count, and features are
sampled in another way. In `topdown`, convolutions are well beyond half of their full speed now,
which is all that TTP607 promises, and that at HiFi2 instead of HiFi4, which doubles the full speed;
that the whole step is inside is luck, as there are more layout conversions than before. A plan does
not foresee that somebody does better than a rule asks, or several things at once.
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


def section(folder: Path) -> str:
    """Return the table, as the last part of the page of savings."""
    told = "".join(f"{row}\n" for row in rows(folder))
    return INTRODUCTION + told + (MISSED if "missed" in told else "")


def rows(folder: Path) -> Iterator[str]:
    """Yield a row for each region."""
    for before, after, region in STEPS:
        old, new = (_Side.of(folder / f"{capture}.csv", region) for capture in (before, after))
        place = (f"`{region}`", f"`{before}` → `{after}`")
        others = [pair for pair in PAIRS if not {before, after} & {*pair.captures.split(" → ")}]
        yield f"| {' | '.join((*place, *_cells(old, new, others)))} |"


class _Side(NamedTuple):
    """A region before or after the work on it."""

    part: Subject
    plan: Plan

    @classmethod
    def of(cls, file: Path, region: str) -> _Side:
        parts = in_regions(Subject(ops=read_ops_csv(file)))
        (part,) = (each for each in parts if each.region == region)
        start = start_of(part, {})
        assert start is not None
        return cls(part, plan_of(run_rules(all_rules(), part), start))

    def kinds(self, codes: Collection[str]) -> set[str]:
        """Return the kinds of the ops that rules would save time of."""
        checked = (rule_of(code).check(self.part).savings for code in codes)
        return {_kind(self.step.op(row)) for saved in checked for row, ns in saved.items() if ns}

    def time_ns(self, kinds: Collection[str]) -> float:
        return sum(op.kernel_ns for _, op in critical_ops(self.step) if _kind(op) in kinds)

    @property
    def step(self) -> OpTable:
        assert self.part.ops is not None
        return step_of(self.part.ops)


#: The same op under the name that it had before.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d", "GridSampleOperation": "GridSample"}


def _kind(op: Op) -> str:
    name = op_name(op.signature, op.attributes).split()[0]
    return _RENAMED.get(name, name)


def _cells(old: _Side, new: _Side, pairs: Collection[Pair]) -> tuple[str, ...]:
    later = {step.finding.code: step.saves.estimate_ns or 0.0 for step in new.plan.steps}
    closed: dict[str, float] = {}
    low = high = 0.0
    for step in old.plan.steps:
        code, spread = step.finding.code, spread_from(step.finding.code, pairs)
        less = (step.saves.estimate_ns or 0.0) - later.get(code, 0.0)
        if less > _NOTHING_NS:
            closed[code] = less
            low += less * spread.low
            high += min(less * spread.high, step.finding.of_ns or less)
    kinds = old.kinds(closed)
    gained = old.plan.start.now_ns - new.plan.start.now_ns
    named = old.time_ns(kinds) - new.time_ns(kinds)
    return (
        ", ".join(closed) or "none",
        microseconds(sum(closed.values())),
        f"{microseconds(low)} to {microseconds(high)}",
        *_judged(gained, low, high, closed),
        *_judged(named, low, high, closed),
    )


def _judged(
    gained_ns: float, low_ns: float, high_ns: float, closed: Collection[str]
) -> tuple[str, str]:
    held = "inside" if low_ns <= gained_ns <= high_ns else "**missed**"
    return microseconds(gained_ns), held if closed else "promised nothing"
