from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.observation import Observation
from tests.rules.answers import Ask, Subject, clean, limit, not_applicable, not_measured
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP405")
LIMIT = limit(1, "B")
TRACED = table(op("Add", replay=(1, 1)))


def opened(**configuration: Scalar) -> Subject:
    observation = Observation("test", configuration=configuration)
    return Subject(ops=TRACED, observation=observation)


@pytest.mark.parametrize(
    "subject",
    [
        opened(trace_region_size=0),
        Subject(facts={"tt_xla": True, "use_trace": True, "TT_RUNTIME_TRACE_REGION_SIZE": None}),
        Subject(facts={"use_trace": "1", "trace_region_size": "0"}),
    ],
)
def test_a_trace_without_a_region_is_found(subject: Subject) -> None:
    assert ask(subject) == LIMIT.found(0.0, "a trace is used with a trace region of 0 B")


def test_the_limit_itself_is_clean() -> None:
    assert ask(opened(trace_region_size=1)) == LIMIT.clean(1.0)


def test_a_limit_of_zero_accepts_what_newer_releases_do() -> None:
    assert ask.with_limits(size=0)(opened(trace_region_size=0)) == clean(0.0, limit=0, unit="B")


def test_a_region_of_tt_xla_is_clean() -> None:
    facts: dict[str, Scalar] = {"use_trace": True, "TT_RUNTIME_TRACE_REGION_SIZE": "10000000"}
    assert ask(facts=facts) == LIMIT.clean(10_000_000.0)


def test_without_a_trace_the_question_does_not_arise() -> None:
    assert ask(ops=table(op("Add"))) == not_applicable("no trace is used")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (
            Subject(facts={"trace_region_size": 4096}),
            "whether a trace is used is not known: state the fact use_trace",
        ),
        (
            Subject(ops=TRACED),
            "the size of the trace region is not known: state the fact trace_region_size",
        ),
    ],
)
def test_what_is_not_known_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


def test_one_known_size_is_enough() -> None:
    facts: dict[str, Scalar] = {
        "use_trace": True, "trace_region_size": 4096, "TT_RUNTIME_TRACE_REGION_SIZE": None,
    }  # fmt: skip
    assert ask(facts=facts) == LIMIT.clean(4096.0)


def test_a_trace_of_tt_xla_without_its_variable_is_found() -> None:
    facts = {"enable_trace": True, "TT_RUNTIME_TRACE_REGION_SIZE": None}
    assert ask(facts=facts).outcome is RuleOutcome.FOUND
    assert ask(facts={**facts, "TT_RUNTIME_TRACE_REGION_SIZE": 10_000_000}).outcome is (
        RuleOutcome.CLEAN
    )
    assert ask(facts={**facts, "enable_trace": False}).outcome is RuleOutcome.NOT_APPLICABLE
