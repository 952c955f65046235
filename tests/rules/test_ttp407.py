from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp407_optimization_level_zero import (
    optimization_level_zero,
)
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from tests.rules.answers import ask

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.hardware import Scalar


@pytest.mark.parametrize("level", [0, "0"])
def test_level_zero_is_found(level: Scalar) -> None:
    assert ask(optimization_level_zero, Subject(facts={"optimization_level": level})) == Answer(
        RuleOutcome.FOUND, "the model is compiled with optimization_level 0", 0.0, 1, "level"
    )


@pytest.mark.parametrize("level", [1, 2])
def test_from_the_limit_on_it_is_clean(level: int) -> None:
    assert ask(optimization_level_zero, Subject(facts={"optimization_level": level})) == Answer(
        RuleOutcome.CLEAN, None, float(level), 1, "level"
    )


def test_without_tt_xla_the_question_does_not_arise() -> None:
    assert ask(optimization_level_zero, Subject(facts={"use_trace": True})) == Answer(
        RuleOutcome.NOT_APPLICABLE,
        "no model of tt-xla: neither tt_xla nor optimization_level stated",
    )


def test_without_a_device_it_is_not_measured() -> None:
    assert ask(optimization_level_zero, Subject()) == Answer(
        RuleOutcome.NOT_MEASURED, "needs a device, or facts that are stated of one"
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"tt_xla": True}, "the level is not known: state the fact optimization_level"),
        ({"optimization_level": "best"}, "optimization_level: expected a number, found 'best'"),
    ],
)
def test_a_level_that_is_not_known_is_not_measured(facts: dict[str, Scalar], reason: str) -> None:
    assert ask(optimization_level_zero, Subject(facts=facts)) == Answer(
        RuleOutcome.NOT_MEASURED, reason
    )
