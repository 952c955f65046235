"""Batches that are shared among devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from tests.rules.answers import Ask, Subject, clean, limit, not_applicable, not_measured
from tests.rules.observations import Observation, measured
from tests.rules.reports import COPY, NO_DATA_PARALLELISM, linear, placed, report
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP701")
LIMIT = limit(0, "samples")
LEFT_OVER = LIMIT.found(2, "a batch of 10 among 4 devices leaves 2 over")


@pytest.mark.parametrize("name", ["batch", "batch_size"])
@pytest.mark.parametrize("ways", [4, "4"])
def test_samples_left_over(name: str, ways: Scalar) -> None:
    asked = Subject(facts={"data_parallel": ways, name: 10})
    assert ask(asked) == LEFT_OVER
    assert ask.with_limits(left_over=2)(asked) == clean(2, limit=2, unit="samples")


def test_an_even_share() -> None:
    assert ask(Subject(facts={"data_parallel": 4, "batch": 8})) == LIMIT.clean(0)


def test_all_devices_share() -> None:
    facts: dict[str, Scalar] = {"data_parallel": True, "batch": 10}
    ops = table(*(op("Matmul", device=device) for device in range(4)))
    assert ask(ops=ops, facts=facts) == LEFT_OVER
    opened = Observation("test_it", hardware=Hardware("wormhole_b0", "t3k", "2x2"))
    assert ask(observation=opened, facts=facts) == LEFT_OVER
    assert ask(facts=facts) == not_measured("it is not known how many devices share the batch")


@pytest.mark.parametrize("mesh", [("4", "PlacementShard(0)"), ("1, 4", COPY, "PlacementShard(0)")])
def test_inputs_sharded_on_their_batch(mesh: tuple[str, ...]) -> None:
    made = report([linear(1, placed(*mesh), placed("4", COPY))])
    assert ask(report=made, facts={"batch": 10}) == LEFT_OVER
    assert ask(report=made) == not_measured(
        "the batch is not known: give it as batch= in the marker"
    )


@pytest.mark.parametrize("fact", [{}, {"batch": 8}, {"batch_size": 8}], ids=str)
def test_the_batch_of_the_marker_comes_first(fact: dict[str, Scalar]) -> None:
    asked = measured(environment={"batch": 10}, facts={"data_parallel": 4, **fact})
    assert ask(asked) == LEFT_OVER


@pytest.mark.parametrize("batch", [True, 0, -4, "ten", None])
def test_what_is_no_batch(batch: Scalar) -> None:
    asked = measured(environment={"batch": batch}, facts={"data_parallel": 4, "batch": 10})
    assert ask(asked) == LEFT_OVER


@pytest.mark.parametrize(
    "subject",
    [
        Subject(facts={"batch": 10}),
        Subject(facts={"batch": 10, "data_parallel": False}),
        Subject(facts={"batch": 10, "data_parallel": 1}),
        Subject(facts={"batch": 10, "data_parallel": float("nan")}),
        Subject(ops=table(op("Matmul"), op("Matmul", device=1)), facts={"batch": 3}),
        Subject(report=report([linear(1, placed("4", COPY), placed("4", "PlacementShard(0)"))])),
        Subject(report=report([linear(1, placed("4", "PlacementShard(3)"), placed("4", COPY))])),
        Subject(report=report([linear(1, placed("1", "PlacementShard(0)"), placed("1", COPY))])),
    ],
    ids=[
        "no fact",
        "stated off",
        "one way",
        "no number",
        "devices alone",
        "weights",
        "columns",
        "one device",
    ],
)
def test_without_data_parallelism(subject: Subject) -> None:
    assert ask(subject) == not_applicable(NO_DATA_PARALLELISM)
