"""The whole output of ``ttnn-perf try`` and ``ttnn-perf journal``, in every shape; their help."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind
from pytest_ttnn_perf.experiments.journal import (
    Base,
    Decision,
    Edit,
    Effect,
    Prediction,
    Refusal,
    Situation,
    Step,
    StepFinding,
    journal_listing,
    read_steps,
    ways_of,
    write_step,
)
from pytest_ttnn_perf.experiments.repository import State
from pytest_ttnn_perf.experiments.try_change import (
    TryResult,
    commands,
    try_document,
    try_lines,
)
from pytest_ttnn_perf.report.tables import Style, printed
from tests.harness.golden import assert_golden

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/reference/try.schema.json").read_text())
RESNET, CORES = "models/test_resnet.py::test_resnet50[8]", "TTP305"
ID = "0123456789abcdef" * 2 + "01234567"


def effect(before: float, after: float, *, metric: str = "wall_time", outcome: str) -> Effect:
    change = after / before - 1
    return Effect(
        RESNET, metric, "ns", Better.LOWER, Kind.TIME, outcome, before, after, change,
        change - 0.01, change + 0.01, 4, 900_000 if metric == "wall_time" else None,
    )  # fmt: skip


def pcc(before: float, after: float, outcome: str = "WITHIN") -> Effect:
    return Effect(
        RESNET, "pcc", "", Better.HIGHER, Kind.ACCURACY, outcome, before, after,
        change=before - after, at_least=0.99,
    )  # fmt: skip


FINDING = StepFinding(RESNET, CORES, "unused-cores", 410_000.0, "Shard over more cores.")
KEPT = Step(
    id="20261117T120000Z-000001",
    at="2026-11-17T12:00:00Z",
    message="bfloat8_b weights",
    decision=Decision.KEEP,
    reasons=(f"{RESNET} wall_time: 2.000 ms → 1.500 ms, -25.0 % (-26.0 % to -24.0 %)",),
    base=ID,
    base_tree="a" * 40,
    state=ID,
    state_tree="b" * 40,
    head=ID,
    rounds=4,
    effects=(
        effect(2_000_000, 1_500_000, outcome="IMPROVED"),
        effect(1_800_000, 1_400_000, metric="device_kernel_time", outcome="IMPROVED"),
        pcc(0.9997, 0.9961, "HOLDS"),
    ),
    closed=(FINDING,),
    opened=(StepFinding(RESNET, "TTP905", "target-missed"),),
    predictions=(Prediction(RESNET, (CORES,), "device_kernel_time", 410_000.0, 400_000.0),),
    candidates=(replace(FINDING, code="TTP402", name="trace-not-used", fix="Capture a trace."),),
    situations={
        RESNET: Situation(
            RESNET, "matmuls: 81.0 % of a step (Matmul)", 1_400_000.0, 600_000.0,
            "-22.2 % (-400 us) = 4 x Matmul -400 us (BFLOAT16 → BFLOAT8_B)",
        )
    },
)  # fmt: skip
REVERTED = replace(
    KEPT, id="20261117T120000Z-000002", base_tree="b" * 40,
    message="other order", decision=Decision.REVERT, reasons=("no gain worth keeping",),
    effects=(effect(1_510_000, 1_512_000, outcome="WITHIN"), pcc(0.9961, 0.9961)),
    closed=(), opened=(), predictions=(), situations={},
)  # fmt: skip
REFUSED = replace(
    KEPT, id="20261117T120000Z-000003", base_tree="b" * 40,
    message="less to do", decision=Decision.NOT_COMPARABLE, reasons=("inputs changed",),
    effects=(), closed=(), opened=(), predictions=(), situations={}, candidates=(), rounds=1,
    refusals=(Refusal(Edit.INPUTS.value, f"{RESNET} wall_time: 8x224x224x3, now 1x224x224x3"),),
)  # fmt: skip
UNSURE = replace(
    KEPT, id="20261117T120000Z-000004", base_tree="b" * 40,
    message="two queues", decision=Decision.CANNOT_TELL,
    reasons=(f"{RESNET}: after 20 rounds it may be -3.0 % to +1.0 %",),
    effects=(effect(1_500_000, 1_485_000, outcome="INCONCLUSIVE"),),
    closed=(), opened=(), predictions=(), situations={}, candidates=(), rounds=20,
)  # fmt: skip
LAST = replace(
    KEPT, id="20261117T120000Z-000005", base_tree="b" * 40,
    state_tree="c" * 40, message="trace",
    effects=(effect(1_490_000, 1_000_000, outcome="IMPROVED"),),
)  # fmt: skip
STEPS = (KEPT, REVERTED, REFUSED, UNSURE, LAST)


def tried(step: Step) -> TryResult:
    base = Base("HEAD", State(step.base_tree, step.base), "0123456 Add the model")
    root = Path("/project")
    file = root / ".ttnn_perf/steps" / f"{step.id}.json"
    remarks = ("t.py::test_new is new: it is no part of the answer",)
    return TryResult(step, file, base, root, ("models/new.py",), remarks)


@pytest.mark.parametrize("step", [KEPT, REVERTED, REFUSED, UNSURE], ids=lambda s: s.decision.value)
def test_what_a_step_comes_to(step: Step, tmp_path: Path) -> None:
    style = Style(80, wrap=True)
    text = "\n".join(printed(try_lines(tried(step), Path("/project/models")), style))
    assert_golden(f"try_{step.decision.value.lower()}", text)
    assert all(len(line) <= 80 for line in text.splitlines() if ": git " not in line)
    document = try_document(tried(step), Path("/project"))
    jsonschema.validate(document, SCHEMA)
    write_step(tmp_path, step)
    assert read_steps(tmp_path) == [step]


def test_more_rounds_are_no_advice_where_sides_cannot_be_compared() -> None:
    other = replace(UNSURE, effects=(effect(1.0, 2.0, outcome="NOT_COMPARABLE"),))
    assert "measure longer" in commands(tried(UNSURE), Path("/project"))
    assert "measure longer" not in commands(tried(other), Path("/project"))
    exact = replace(UNSURE, effects=(replace(UNSURE.effects[0], low=None, high=None),), rounds=1)
    assert not commands(tried(exact), Path("/project"))


def test_the_journal_has_the_kernels_of_the_only_region_and_no_rounding() -> None:
    kernels = "device_kernel_time.decode"
    steps = [
        replace(KEPT, effects=(effect(*ends, outcome="IMPROVED"),
                               effect(3.0, 2.0, metric=kernels, outcome="IMPROVED")))
        for ends in ((3_255_500.1, 1_251_600.3), (1_251_600.3, 1_074_500.7), (1_074_500.7, 9e5))
    ]  # fmt: skip
    (way,) = ways_of(steps)
    one, two, three = (part.counts for part in way.parts)
    assert way.first + (one + two + three) != way.now, "floats are not exact"
    assert way.unexplained == 0.0
    assert [part.device and part.device.metric for part in way.parts] == [kernels] * 3


def test_long_lists_are_cut_and_counted() -> None:
    much = replace(KEPT, message="a long id " * 40, closed=KEPT.closed * 300)
    document = try_document(tried(much), Path("/project"))
    assert document["left_out"] == {"closed": 288}
    jsonschema.validate(document, SCHEMA)


def test_the_journal() -> None:
    ways = ways_of(STEPS)
    text = journal_listing(STEPS, ways).text("table", Style(80, wrap=True)).rstrip("\n")
    assert_golden("journal_table", text)
