from __future__ import annotations

from pytest_ttnn_perf.core.finding import Answer, AxisEffect
from tests.rules.answers import Ask, Evidence, not_measured

ask = Ask("TTP013")
MOVED = AxisEffect("batch", (1, 2), 2, took_effect=True)
IDLE = AxisEffect("weights", ("bf16", "bfp8"), 2)
ALONE = AxisEffect("queues", (1,), 0)


def test_an_axis_that_changed_nothing() -> None:
    assert ask(axes=(MOVED, IDLE)) == Answer.found(
        "axis weights changed nothing that was observed",
        evidence=[Evidence("weights: 2 pairs of points compared")],
    )


def test_several_axes_are_named_together() -> None:
    answer = ask(axes=(AxisEffect("batch", (1, 2), 1), IDLE))
    assert answer.reason == "axes batch and weights changed nothing that was observed"


def test_axes_that_took_effect() -> None:
    assert ask(axes=(MOVED,)) == Answer.clean()
    assert ask(axes=(MOVED, ALONE)) == Answer.clean()


def test_without_points_to_compare_nobody_can_tell() -> None:
    assert ask(axes=(ALONE,)) == not_measured("no two points differ in one axis alone")


def test_a_test_that_is_no_point_of_a_sweep() -> None:
    assert ask() == not_measured("needs all points of a sweep")
