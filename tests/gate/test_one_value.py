"""A result has one value, which every command and report prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.gate.judging import judge_run
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.report.run import property_pairs, write_run
from tests.harness.baselines import stored, timed, times
from tests.harness.project import run_command

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

TEST = "test_a.py::test_a"
RECORD = ".ttnn_perf/runs/20260102T000000Z-bbbbbb.json"
FULL = {"places": ["test_a.py"], "others": [], "unasked": []}
FIRST, CONFIRMED = [66.0] * 3, ([61.0] * 3, [63.5] * 3, [61.9] * 3, [62.3] * 3)
OF_NEW = "63.50 ms"
CLEARED = ([56.0] * 3, [50.44] * 3)


@pytest.fixture(params=["confirmed", "cleared", "new", "machine"])
def printed(request: pytest.FixtureRequest, desk: Desk) -> str:
    """Record a test that was measured again, with its verdict; return its value as printed."""
    (desk.path / ".ttnn_perf" / "runs").mkdir(parents=True)
    test, value = timed(FIRST, *CONFIRMED), "62.17 ms"
    if request.param == "cleared":
        test, value = timed(FIRST, *CLEARED), "50.44 ms"
    elif request.param == "machine":
        test["metrics"]["latency"]["machine"] = [0.03] * 5
    if request.param == "new":
        test, value = timed(FIRST, *CONFIRMED[:2]), OF_NEW
    else:
        desk.store(TEST, stored(times(49.9, 50.0, 50.1, 50.0, 49.9)))
    desk.record(RECORD, tests={TEST: test}, collected=FULL)
    run = judge_run(read_run(desk.path / RECORD), BaselineStore(desk.root), Settings())
    write_run(run, desk.path / RECORD)
    return value


def values_in(text: str) -> set[str]:
    """Return the values near those that were measured, but for the passes one by one."""
    text = re.sub("confirm passes: .*", "", text)
    return set(re.findall(r"\b(?:5[0-9]|6[0-9])\.\d\d ms", text)) - {"50.00 ms"}


@pytest.mark.parametrize(
    "words",
    [
        ("gate", RECORD),
        ("gate", RECORD, "--format", "markdown"),
        ("show", RECORD),
        ("history", "--all-branches", TEST),
        ("compare", RECORD, RECORD),
        ("explain", RECORD),
    ],
    ids=" ".join,
)
def test_commands_print_the_value_of_the_verdict(printed: str, words: tuple[str, ...]) -> None:
    # Of tests without a baseline, the gate prints no numbers.
    silent = words[0] == "gate" and printed == OF_NEW
    assert values_in(run_command(*words).text) == (set() if silent else {printed})


def test_reports_have_it(printed: str, desk: Desk) -> None:
    run = read_run(desk.path / RECORD)
    pairs = dict(property_pairs(run.tests[TEST], run.hardware))
    assert f"{float(pairs['ttnn_perf.latency']):.2f} ms" == printed
    assert run_command("report", RECORD, "-o", "page.html").code == 0
    page = (desk.path / "page.html").read_text()
    found = re.findall(r'"value": ?([0-9.]+), ?"baseline"', page)
    assert {f"{float(value):.2f} ms" for value in found} == {printed}


def test_accept_says_it(printed: str) -> None:
    ran = run_command("baseline", "accept", RECORD, "--dry-run", "--reason", "why")
    # Of a run within its limit, at most a session is added: its own value is not told.
    assert printed in values_in(ran.text) or "test unchanged" in ran.text, ran.text


def test_status_says_the_stored_verdict(desk: Desk) -> None:
    """What is stored since then changes nothing of what the run was told."""
    (desk.path / ".ttnn_perf" / "runs").mkdir(parents=True)
    desk.store(TEST, stored(times(49.9, 50.0, 50.1, 50.0, 49.9)))
    desk.record(RECORD, tests={TEST: timed(FIRST, *CONFIRMED)}, collected=FULL)
    run = judge_run(read_run(desk.path / RECORD), BaselineStore(desk.root), Settings())
    write_run(run, desk.path / RECORD)
    said = "REGRESSED: latency 24.3 % slower, limit"
    assert said in run_command("status").text
    assert "62.17 ms, baseline 50.00 ms" in run_command("status").text
    assert run_command("baseline", "accept", RECORD, "--reason", "why").code == 0
    assert said in run_command("status").text
