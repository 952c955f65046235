from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rules.answers import Ask, limit, not_applicable, not_measured

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP407")
LIMIT = limit(1, "level")


@pytest.mark.parametrize("level", [0, "0"])
def test_level_zero_is_found(level: Scalar) -> None:
    assert ask(facts={"optimization_level": level}) == LIMIT.found(
        0.0, "the model is compiled with optimization_level 0"
    )


@pytest.mark.parametrize("level", [1, 2])
def test_from_the_limit_on_it_is_clean(level: int) -> None:
    assert ask(facts={"optimization_level": level}) == LIMIT.clean(float(level))


def test_without_tt_xla_the_question_does_not_arise() -> None:
    assert ask(facts={"use_trace": True}) == not_applicable(
        "no model of tt-xla: neither observed nor stated"
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"tt_xla": True}, "the level is not known: state the fact optimization_level"),
        ({"optimization_level": "best"}, "optimization_level: expected a number, found 'best'"),
    ],
)
def test_a_level_that_is_not_known_is_not_measured(facts: dict[str, Scalar], reason: str) -> None:
    assert ask(facts=facts) == not_measured(reason)
