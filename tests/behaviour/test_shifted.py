"""A machine that is slower as a whole: said once, instead of failing every test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.behaviour.model import counts_of, entry_of, record_of
from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def known(project: Project) -> Project:
    """A project with five tests whose baselines are 10 ms."""
    write_turns(project, **{name: latencies(10) for name in NAMES})
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project


def run_at(project: Project, *options: str, **milliseconds: float) -> Ran:
    """Run the tests at other speeds, in workers."""
    write_turns(project, **{name: latencies(ms) for name, ms in milliseconds.items()})
    return project.pytest(*IN_WORKERS, "--ttnn-perf", "--ttnn-perf-json=run.json", *options)


def test_suspects_that_are_only_as_slow_as_the_machine_are_labelled_and_end_in_code_6(
    known: Project,
) -> None:
    options = ("--junitxml=junit.xml", "--ttnn-perf-markdown=run.md", "-x")
    ran = run_at(known, *options, **dict.fromkeys(NAMES, 15.0))

    # The run has failed, and no test has: the closing line counts one failure more than tests.
    assert (ran.code, counts_of(ran)) == (6, "1 failed, 5 passed")
    assert "FAILED ttnn-perf::all tests slower - " in ran.text
    assert "exit code 6: the run fails, no single test is to blame" in ran.text
    outcomes = [entry_of(known, id_of(n))["verdicts"]["latency"]["outcome"] for n in NAMES]
    assert outcomes == ["SHIFTED"] * 5
    # Every report has the failure, and no test is to be run again.
    suite = ET.parse(known.path / "junit.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "0", "6")
    failed = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    failed = {name: failure for name, failure in failed.items() if failure is not None}
    assert list(failed) == ["all tests slower"]
    assert (known.path / "run.md").read_text().startswith("## ❌ ttnn-perf: all 5 tests ")
    # Its record is judged anew as it was.
    record = record_of(known)
    assert record.get("complete", True)
    assert (record["shift"]["moved"], record["shift"]["voting"]) == (5, 5)
    again = known.cli("gate", "run.json", "--format", "json")
    document = json.loads(again.text)
    assert (again.code, document["failed"], document["shifted"]) == (6, False, True)
    collected = known.pytest("--ttnn-perf", "--lf", "--collect-only", "-q")
    assert "5 tests collected" in collected.text


def test_shifted_machine_sets_no_standard_but_for_what_has_none(known: Project) -> None:
    before = known.stored()

    options = ("--ttnn-perf-update=improved", "--ttnn-perf-confirm=1")
    ran = run_at(known, *options, **dict.fromkeys(NAMES, 15.0), f=30.0)

    assert (ran.code, counts_of(ran)) == (6, "1 failed, 6 passed")
    said = "  all tests moved, so only new baselines were written"
    assert said in ran.text.splitlines()
    after = known.stored()
    new = after.pop("test_model[f]")
    assert after == before
    assert new["metrics"]["latency"]["sessions"] == [[30, 0, 1]] * 2
    assert "1 recorded" in ran.text
