"""Weights on a mesh."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.reports import COPY, NO_DATA_PARALLELISM, Operation, linear, placed, record, report

ask = Ask("TTP702")
LIMIT = limit(0, "weights")
BATCHED = placed("2", "PlacementShard(0)")
COPIED = placed("2", COPY)
CUT = placed("2", "PlacementShard(3)")


def test_weights_that_are_cut() -> None:
    convolution = Operation(
        3, "ttnn.conv2d", arguments={"input_tensor": BATCHED, "weight_tensor": CUT}
    )
    made = report([linear(1, BATCHED, COPIED), linear(2, BATCHED, CUT), convolution])
    assert ask(report=made) == LIMIT.found(
        2,
        "cut among devices: 2 of 3 weights",
        [
            Evidence("ttnn.linear (operation 2)", 2, "parts"),
            Evidence("ttnn.conv2d (operation 3)", 2, "parts"),
        ],
    )
    assert ask.with_limits(weights=2)(report=made) == clean(2, limit=2, unit="weights")


@pytest.mark.parametrize("facts", [{"data_parallel": 2}, {}])
def test_weights_on_every_device(facts: dict[str, int]) -> None:
    # The second operand of an add is no weight.
    add = linear(2, BATCHED, CUT, name="ttnn.add")
    asked = Subject(report=report([linear(1, BATCHED, COPIED), add]), facts=facts)
    assert ask(asked) == LIMIT.clean(0)


def test_what_another_operation_computed_is_no_weight() -> None:
    keys = BATCHED.replace("device_id=1", "tensor_id=7, device_id=1")
    attention = replace(
        linear(2, BATCHED, keys, "ttnn.matmul"), inputs=(6, 7), device_operations=("Matmul",)
    )
    heads = Operation(1, "ttnn.split_heads", outputs=(7,), device_operations=("NlpCreateHeads",))
    projection = linear(3, BATCHED, COPIED)
    made = report([heads, attention, projection], [record(7, 2, 1, 32, 64)], [(7, 1, 2)])
    assert ask(report=made) == LIMIT.clean(0)


def test_a_mesh_of_one_device_cuts_nothing() -> None:
    one = report([linear(1, placed("1", COPY), placed("1", "PlacementShard(3)"))])
    assert ask(Subject(report=one, facts={"data_parallel": 2})) == LIMIT.clean(0)


def test_inputs_that_do_not_tell() -> None:
    assert ask(facts={"batch": 8}) == not_applicable(NO_DATA_PARALLELISM)
    assert ask(report=report([linear(1, CUT, CUT)])) == not_applicable(NO_DATA_PARALLELISM)
    parallel = {"data_parallel": 2}
    assert ask(facts=parallel) == not_measured("needs a report database")
    silent = Subject(report=report([Operation(1, "ttnn.linear")]), facts=parallel)
    assert ask(silent) == not_measured("the report does not say how weights are placed on the mesh")
