"""Advice for every outcome, and commands that can be copied."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.report.sentences import (
    Rerun,
    label,
    remedy_of,
    sentence,
    worst_first,
)
from pytest_ttnn_perf.report.terminal import failure_text

RERUN = "pytest t.py::t --ttnn-perf-update"
UPDATES = Rerun().updates("t.py::t")
NEW = f"record: {RERUN}=new"
ACCEPT = f'accept: {RERUN}=all --ttnn-perf-reason "why"'


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
    ("change", "said"),
    [
        ({}, "t 20.0 % slower, limit 5.0 % (12.00 ms, baseline 10.00 ms)"),
        (
            {"provisional": True, "runs": 1},
            "t 20.0 % slower, limit 5.0 % (12.00 ms, baseline 10.00 ms) (provisional: 1 run)",
        ),
        (
            {"machine": 0.1, "observed": 13.2},
            "t 32.0 % slower (20.0 % without the 10.0 % all tests share), limit 5.0 % "
            "(13.20 ms, baseline 10.00 ms)",
        ),
        (
            {"outcome": Outcome.TOO_NOISY, "limit": 0.49, "change": 0.0},
            "t cannot notice less than 49.0 % (12.00 ms, baseline 10.00 ms)",
        ),
    ],
)
def test_a_sentence_has_change_limit_and_values(change: dict[str, Any], said: str) -> None:
    assert sentence(replace(SLOWER, **change)) == said


def test_an_absolute_limit_has_its_own_label() -> None:
    accuracy = Metric("pcc", "", better=Better.HIGHER, kind=Kind.ACCURACY)
    broken = Verdict(
        accuracy, Outcome.REGRESSED, Reason.ABSOLUTE_LIMIT, "logits", 0.962171, bound=0.99
    )
    assert (
        f"{label(broken)}: {sentence(broken)}" == "BELOW_LIMIT: pcc 0.962171, limit 0.99 (logits)"
    )
    assert label(replace(broken, observed=2.0, bound=1.0)) == "ABOVE_LIMIT"


def test_the_worst_comes_first() -> None:
    twice = replace(SLOWER, metric=Metric("u", "ms"), change=0.4)
    wrong = replace(SLOWER, metric=Metric("pcc", "", kind=Kind.ACCURACY))
    new = Verdict(Metric("n", "ms"), Outcome.NO_BASELINE, Reason.NEW_METRIC, observed=1.0)
    assert worst_first([new, SLOWER, twice, wrong]) == [wrong, twice, SLOWER, new]


@pytest.mark.parametrize(
    ("environment", "note"),
    [
        ({}, None),
        ({"load_1m": 13.0, "cpu_count": 2}, "load 13 on 2 processors"),
        ({"load_1m": 13.0, "cpu_count": 2, "runnable_threads": 0}, None),
        ({"load_1m": 0.4, "cpu_count": 8}, None),
    ],
)
def test_a_failure_on_a_busy_machine_says_so(environment: Any, note: str | None) -> None:
    judged = JudgedTest(Observation("t.py::t", environment=environment), (SLOWER,))
    text = failure_text(judged, [SLOWER], rerun=Rerun(base="3ab6072"))
    assert text.splitlines() == [
        "REGRESSED: t 20.0 % slower, limit 5.0 % (12.00 ms, baseline 10.00 ms)",
        "  cause: unknown; compare: ttnn-perf ab 3ab6072 t.py::t",
        *([f"  note: {note}"] if note else []),
        '  accept: pytest t.py::t --ttnn-perf-update=all --ttnn-perf-reason "why"',
    ]
