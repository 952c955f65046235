from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp405_trace_region_missing import (
    trace_region_missing,
)
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from pytest_ttnn_perf.records.hardware import Configuration, Scalar
from pytest_ttnn_perf.records.observation import Observation
from tests.rules.answers import ask
from tests.rules.tables import op, table

TRACED = table(op("Add", replay=(1, 1)))


def opened(**configuration: Scalar) -> Subject:
    observation = Observation("test", configuration=Configuration(configuration))
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
    assert ask(trace_region_missing, subject) == Answer(
        RuleOutcome.FOUND, "a trace is used with a trace region of 0 B", 0.0, 1, "B"
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(trace_region_missing, opened(trace_region_size=1)) == Answer(
        RuleOutcome.CLEAN, None, 1.0, 1, "B"
    )


def test_a_limit_of_zero_accepts_what_newer_releases_do() -> None:
    assert ask(trace_region_missing.with_limits(size=0), opened(trace_region_size=0)) == Answer(
        RuleOutcome.CLEAN, None, 0.0, 0, "B"
    )


def test_a_region_of_tt_xla_is_clean() -> None:
    facts: dict[str, Scalar] = {"use_trace": True, "TT_RUNTIME_TRACE_REGION_SIZE": "10000000"}
    assert ask(trace_region_missing, Subject(facts=facts)) == Answer(
        RuleOutcome.CLEAN, None, 10_000_000.0, 1, "B"
    )


def test_without_a_trace_the_question_does_not_arise() -> None:
    assert ask(trace_region_missing, Subject(ops=table(op("Add")))) == Answer(
        RuleOutcome.NOT_APPLICABLE, "no trace is used"
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs a device, or facts that are stated of one"),
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
    assert ask(trace_region_missing, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)


def test_one_known_size_is_enough() -> None:
    facts: dict[str, Scalar] = {
        "use_trace": True, "trace_region_size": 4096, "TT_RUNTIME_TRACE_REGION_SIZE": None,
    }  # fmt: skip
    assert ask(trace_region_missing, Subject(facts=facts)) == Answer(
        RuleOutcome.CLEAN, None, 4096.0, 1, "B"
    )
