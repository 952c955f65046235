"""Weights on a mesh."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp702_weights_not_replicated import (
    weights_not_replicated,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.ttnn_report import Operation
from tests.rules.answers import ask
from tests.rules.meshes import COPY, NO_DATA_PARALLELISM, linear, placed
from tests.rules.reports import record, report

BATCHED = placed("2", "PlacementShard(0)")
COPIED = placed("2", COPY)
CUT = placed("2", "PlacementShard(3)")


def test_weights_that_are_cut() -> None:
    convolution = Operation(
        3, "ttnn.conv2d", arguments={"input_tensor": BATCHED, "weight_tensor": CUT}
    )
    made = report([linear(1, BATCHED, COPIED), linear(2, BATCHED, CUT), convolution])
    assert ask(weights_not_replicated, Subject(report=made)) == found(
        "cut among devices: 2 of 3 weights",
        value=2,
        limit=0,
        unit="weights",
        evidence=[
            Evidence("ttnn.linear (operation 2)", 2, "parts"),
            Evidence("ttnn.conv2d (operation 3)", 2, "parts"),
        ],
    )
    limit = weights_not_replicated.with_limits(weights=2)
    assert ask(limit, Subject(report=made)) == clean(2, limit=2, unit="weights")


@pytest.mark.parametrize("facts", [{"data_parallel": 2}, {}])
def test_weights_on_every_device(facts: dict[str, int]) -> None:
    # The second operand of an add is no weight.
    add = linear(2, BATCHED, CUT, name="ttnn.add")
    asked = Subject(report=report([linear(1, BATCHED, COPIED), add]), facts=facts)
    assert ask(weights_not_replicated, asked) == clean(0, limit=0, unit="weights")


def test_what_another_operation_computed_is_no_weight() -> None:
    keys = BATCHED.replace("device_id=1", "tensor_id=7, device_id=1")
    attention = replace(
        linear(2, BATCHED, keys, "ttnn.matmul"), inputs=(6, 7), device_operations=("Matmul",)
    )
    heads = Operation(1, "ttnn.split_heads", outputs=(7,), device_operations=("NlpCreateHeads",))
    projection = linear(3, BATCHED, COPIED)
    made = report([heads, attention, projection], [record(7, 2, 1, 32, 64)], [(7, 1, 2)])
    answer = ask(weights_not_replicated, Subject(report=made))
    assert answer == clean(0, limit=0, unit="weights")


def test_a_mesh_of_one_device_cuts_nothing() -> None:
    one = report([linear(1, placed("1", COPY), placed("1", "PlacementShard(3)"))])
    asked = Subject(report=one, facts={"data_parallel": 2})
    assert ask(weights_not_replicated, asked) == clean(0, limit=0, unit="weights")


def test_inputs_that_do_not_tell() -> None:
    rule = weights_not_replicated
    assert ask(rule, Subject()) == not_measured("needs a device, or facts that are stated of one")
    assert ask(rule, Subject(facts={"batch": 8})) == not_applicable(NO_DATA_PARALLELISM)
    assert ask(rule, Subject(report=report([linear(1, CUT, CUT)]))) == not_applicable(
        NO_DATA_PARALLELISM
    )
    parallel = {"data_parallel": 2}
    assert ask(rule, Subject(facts=parallel)) == not_measured("needs a report database")
    silent = Subject(report=report([Operation(1, "ttnn.linear")]), facts=parallel)
    assert ask(rule, silent) == not_measured(
        "the report does not tell how weights are placed on the mesh"
    )
