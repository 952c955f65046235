"""A machine that is slower, or faster, as a whole: said once, instead of failing every test."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.behaviour.model import counts_of, entry_of, record_of
from tests.behaviour.turns import IN_WORKERS, id_of, latencies, write_turns

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

NAMES = ("a", "b", "c", "d", "e")
NOT_WRITTEN = "  only new baselines were written: a shifted machine is no standard"
CODE_6 = "  no single test failed, but none is known to have passed: exit code 6"
ADVICE = """\
  run it again on a machine in the state in which the baselines were accepted
  the machine, or a change that all tests share? compare in turns: ttnn-perf ab REF
  if it should stay: pytest --ttnn-perf-update=all --ttnn-perf-reason "why"
"""


@pytest.fixture
def known(project: Project) -> Project:
    """A project with five tests whose baselines are 10 ms, with limits of 9.1 %."""
    write_turns(project, **{name: latencies(10) for name in NAMES})
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project


def run_at(project: Project, *milliseconds: float, options: tuple[str, ...] = ()) -> Ran:
    """Run the tests at other speeds, in workers; those beyond the fifth are new."""
    names = "abcdefghij"[: len(milliseconds)]
    now = zip(names, milliseconds, strict=True)
    write_turns(project, **{name: latencies(each) for name, each in now})
    return project.pytest(*IN_WORKERS, "--ttnn-perf", "--ttnn-perf-json=run.json", *options)


def shifts_in(ran: Ran) -> list[str]:
    """Return what is said about a shift, without how busy this machine is."""
    lines = [line for line in ran.text.splitlines() if "environment shifted: " in line]
    busy = r"load [\d.]+ on \d+ processors when the run began"
    lines = [re.sub(rf"\); {busy}$", "); nothing that is recorded differs", x) for x in lines]
    return [re.sub(f"; {busy}$", "", line) for line in lines]


def said(size: str, moved: str, differs: str = "nothing that is recorded differs") -> str:
    """Return the sentence about a shift."""
    return f"environment shifted: {size} as a whole ({moved} moved the same way); {differs}"


def verdict_of(project: Project, name: str) -> tuple[str, str | None]:
    verdict = entry_of(project, id_of(name))["verdicts"]["latency"]
    return verdict["outcome"], verdict["reason"]


def gated(project: Project) -> tuple[int, dict[str, Any]]:
    """Judge the run's record again; return exit code and document."""
    ran = project.cli("gate", "run.json", "--format", "json")
    return ran.code, json.loads(ran.text)


def test_suspects_that_are_only_as_slow_as_the_machine_are_labelled_and_end_in_code_6(
    known: Project,
) -> None:
    options = ("--junitxml=junit.xml", "--ttnn-perf-markdown=run.md", "-x")
    ran = run_at(known, 12, 12, 12, 10.5, 12.3, options=options)

    # The run has failed, and no test has: the closing line counts one failure more than tests.
    assert (ran.code, counts_of(ran)) == (6, "1 failed, 5 passed")
    sentence = said("20.0 % slower", "5 of 5 tests")
    assert shifts_in(ran) == [f"ttnn-perf: {sentence}", sentence]
    assert "FAILED ttnn-perf::environment shifted - 20.0 % slower as a whole (5 of 5" in ran.text
    assert f"{CODE_6}\n{ADVICE}" in ran.text
    # It was believed once all were measured again.
    assert "confirm pass 1 of 2: measuring 5 controls again in a fresh process" in ran.text
    assert "ttnn-perf: 5 controls: 19.9 % slower than their baselines" in ran.text
    assert "confirm pass 2" not in ran.text
    assert [verdict_of(known, name) for name in NAMES] == [
        *[("SHIFTED", "environment shifted")] * 3,
        ("WITHIN", None),
        ("SHIFTED", "environment shifted"),
    ]
    # Every report has the failure, and no test is to be run again.
    suite = ET.parse(known.path / "junit.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "0", "6")
    cases = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    failed = {name: case for name, case in cases.items() if case is not None}
    assert list(failed) == ["environment shifted"]
    assert "ttnn-perf ab REF" in (failed["environment shifted"].text or "")
    headline = (known.path / "run.md").read_text().splitlines()[0]
    assert headline == (
        "## ❌ ttnn-perf: environment shifted; 5 tests gated, none failed individually"
    )
    # Its record is judged anew as it was.
    record = record_of(known)
    assert record.get("complete", True)
    shift = record["shift"]
    assert (shift["change"], shift["moved"], shift["voting"]) == (pytest.approx(0.2), 5, 5)
    code, document = gated(known)
    assert (code, document["failed"], document["shifted"]) == (6, False, True)
    assert document["shift"] == pytest.approx(0.2)
    again = known.pytest("--ttnn-perf", "--lf", "--collect-only", "-q")
    assert "5 tests collected" in again.text


def test_a_shift_that_controls_do_not_bear_out_is_none_and_names_who_got_slower(
    project: Project,
) -> None:
    """Three of ten tests share a slower layer; for four it was a moment's disturbance."""
    slower, disturbed, steady = "abc", "defg", "hij"
    write_turns(project, **{name: latencies(10) for name in slower + disturbed + steady})
    assert project.pytest("--ttnn-perf-update=new").code == 0
    turns = {
        **dict.fromkeys(slower, latencies(12)),
        **dict.fromkeys(disturbed, latencies(12, 10)),
        **dict.fromkeys(steady, latencies(10)),
    }
    write_turns(project, **turns)

    ran = project.pytest(*IN_WORKERS, "--ttnn-perf", "--ttnn-perf-json=run.json")

    assert (ran.code, counts_of(ran)) == (1, "3 failed, 7 passed")
    refuted = "ttnn-perf: not the environment: 7 of 10 tests moved, and the controls did not"
    assert refuted in ran.text.splitlines()
    outcomes = "".join(verdict_of(project, name)[0][0] for name in slower + disturbed + steady)
    assert outcomes == "RRRWWWWWWW"
    assert "shift" not in record_of(project)
    code, document = gated(project)
    assert (code, document["failed"], document["shifted"]) == (1, True, False)


def test_shifted_machine_sets_no_standard_but_for_what_has_none(known: Project) -> None:
    before = known.stored()

    options = ("--ttnn-perf-update=improved", "--ttnn-perf-confirm", "1")
    ran = run_at(known, *[12] * 5, 30, options=options)

    assert (ran.code, counts_of(ran)) == (6, "1 failed, 6 passed")
    assert NOT_WRITTEN in ran.text.splitlines()
    after = known.stored()
    new = after.pop("test_model[f]")
    assert after == before
    assert new["metrics"]["latency"]["sessions"] == [[30, 0, 1]] * 2
    assert known.baseline().read_text().count(record_of(known)["id"]) == 2
    assert "1 written" in ran.text


TIME = {"unit": "ms", "better": "lower", "kind": "time"}
THEN: dict[str, object] = {"host_hash": "1111", "governor": "performance", "python": "3.12.1"}


def write_record(
    project: Project,
    value: float,
    *,
    kind: dict[str, str] = TIME,
    now: dict[str, object] = THEN,
) -> None:
    """Write the record of a run of five tests, and a baseline of 100 for each."""
    hardware = {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}
    measured = {"metrics": {"m": {**kind, "samples": [value]}}}
    tests = {f"t.py::t{number}": measured for number in range(5)}
    record = {
        "format": 1,
        "hardware": hardware,
        "environment": {"ttnn": "0.81.1", **now},
        "tests": tests,
    }
    (project.path / "run.json").write_text(json.dumps(record))
    baseline = {
        "accepted": {"at": "2026-11-15T10:00:00Z", "ttnn": "0.81.1", "environment": THEN},
        "metrics": {"m": {**kind, "sessions": [[100, 1, 5, f"{n}"] for n in range(3)]}},
    }  # fmt: skip
    stored = {f"t{number}": baseline for number in range(5)}
    folder = project.path / "baselines" / "wormhole_b0-n150-1x1"
    folder.mkdir(parents=True)
    document = {"format": 1, "hardware": hardware, "tests": stored}
    (folder / "t.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("now", "differs"),
    [
        (
            {**THEN, "governor": "powersave", "ttnn": "0.82.0"},
            "governor powersave, at the baselines performance; "
            "ttnn 0.82.0, at the baselines 0.81.1",
        ),
        ({**THEN, "governor": None}, "no governor, at the baselines performance"),
        ({**THEN, "load_1m": 9.5, "cpu_count": 8}, "load 9.5 on 8 processors when the run began"),
    ],
    ids=["two", "gone", "busy"],
)
def test_gate_names_what_differs(project: Project, now: dict[str, object], differs: str) -> None:
    write_record(project, 110, now=now)
    ran = project.cli("gate", "run.json")
    assert ran.code == 6
    lines = [line for line in ran.text.splitlines() if line.startswith("environment shifted")]
    assert lines == [said("10.0 % slower", "5 of 5 tests", differs)]
