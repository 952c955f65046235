"""Advice for every outcome, and commands that can be copied."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import (
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.report.sentences import Rerun, remedy_of, sentence

RERUN = "pytest t.py::t --ttnn-perf-update"
UPDATES = Rerun().updates("t.py::t")
NEW = f"record it with: {RERUN}=new"
ACCEPT = f'accept it with: {RERUN}=all --ttnn-perf-reason "why"'


@pytest.mark.parametrize(
    ("outcome", "reason", "text"),
    [
        (Outcome.WITHIN, None, None),
        (Outcome.IMPROVED, None, f"keep it with: {RERUN}"),
        (Outcome.REGRESSED, None, ACCEPT),
        (Outcome.NO_BASELINE, Reason.NEW_TEST, NEW),
        (Outcome.NOT_COMPARABLE, Reason.OTHER_KEY, NEW),
        (
            Outcome.NOT_COMPARABLE,
            Reason.OTHER_DEFINITION,
            f"correct the metric's definition in the test, or {ACCEPT}",
        ),
        (
            Outcome.NO_DATA,
            Reason.NOT_POSITIVE,
            'fix what produces the number; a value that may be zero needs kind="count"',
        ),
    ],
)
def test_advice(outcome: Outcome, reason: Reason | None, text: str | None) -> None:
    found = remedy_of(Verdict(Metric("t", "ms"), outcome, reason), UPDATES)
    assert (str(found) if found else None) == text


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("reason", [None, *Reason])
def test_whatever_is_not_fine_has_advice(outcome: Outcome, reason: Reason | None) -> None:
    found = remedy_of(Verdict(Metric("t", "ms"), outcome, reason), UPDATES)
    assert (found is None) == (outcome in {Outcome.WITHIN, Outcome.SHIFTED})


def test_a_record_is_accepted_without_the_hardware() -> None:
    rerun = Rerun(options=("--ttnn-perf-baselines", "my base"), records=("a.json", "b c.json"))
    command = "ttnn-perf baseline accept a.json 'b c.json' --baselines 'my base'"
    assert rerun.updates("t.py::t[a b]") == (
        f"{command} --reason \"why\" -- 't.py::t[a b]'",
        f"{command} --update new -- 't.py::t[a b]'",
        f"{command} --reason \"why\" -- 't.py::t[a b]'",
        ("ttnn-perf", "baseline", "forget", "--baselines", "my base", "--", "t.py::t[a b]"),
        "a.json, b c.json",
        (),
    )
    assert rerun.accept_all() == (
        "ttnn-perf baseline accept a.json 'b c.json' --baselines 'my base' --reason \"why\""
    )


def test_a_run_is_accepted_by_its_record_and_not_measured_again() -> None:
    rerun = Rerun(options=("--ttnn-perf-baselines", "my base"), record="my runs/a.json")
    command = "ttnn-perf baseline accept 'my runs/a.json' --baselines 'my base' --reason \"why\" --"
    updates = rerun.updates("t.py::t")
    assert updates.accept == f"{command} t.py::t"
    assert updates.record.startswith("pytest ")
    assert rerun.accept("t.py::t", "t.py::u") == f"{command} t.py::t t.py::u"


SLOWER = Verdict(
    Metric("t", "ms"),
    Outcome.REGRESSED,
    observed=12.0,
    centre=10.0,
    change=0.2,
    limit=0.05,
    samples=5,
    sessions=4,
    runs=4,
)


@pytest.mark.parametrize(
    ("change", "basis"),
    [
        ({}, ""),
        ({"provisional": True, "runs": 2}, "; 2 runs seen"),
        ({"confirmed": (11.0, 13.0), "machine": 0.0}, "; confirm passes: 11.00 ms, 13.00 ms"),
        (
            {"confirmed": (11.0,), "machine": 0.034},
            "; confirm passes: 11.00 ms, not counting 3.4 % by which the machine was slower",
        ),
        (
            {"confirmed": (11.0,)},
            "; confirm passes: 11.00 ms; nothing to compare the machine with",
        ),
    ],
)
def test_a_sentence_says_what_it_rests_on(change: dict[str, Any], basis: str) -> None:
    assert sentence(replace(SLOWER, **change)) == (
        "t 12.00 ms, baseline 10.00 ms: 20.0 % slower, limit 5.0 % "
        f"(5 samples against 4 sessions{basis})"
    )
