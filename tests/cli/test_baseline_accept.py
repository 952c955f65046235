"""``ttnn-perf baseline accept``: results of a CI job become baselines, without its hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.baselines import N150, T3K, stored, timed, times
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

A, B = "models/test_a.py::test_a", "models/test_b.py::test_b[8]"
SLOW = timed([12.0, 12.1, 11.9], [12.1, 12.0], [12.0])
FAST = timed([8.0, 8.1, 7.9], [8.1, 8.0], [8.0])
LIMITED = {"metrics": {"pcc": {"unit": "", "kind": "accuracy", "samples": [0.9], "at_least": 0.99}}}


def test_new_tests_are_recorded_with_the_provenance_of_the_record(desk: Desk) -> None:
    desk.record(tests={A: timed([10.0], [10.2], [10.1]), B: [5.0, 5.1]})
    ran = desk.run("accept", "run.json", "--reason", "first of CI")
    assert (ran.code, ran.errors) == (0, "")
    assert desk.sessions(A) == [10.0, 10.2, 10.1]
    accepted = desk.find(A).accepted  # type: ignore[union-attr]
    assert (accepted.commit, accepted.reason) == ("abc1234", "first of CI")
    assert accepted.environment == {"python": "CPython 3.12.1"}
    assert "create baselines/wormhole_b0-n150-1x1/models/test_a.json" in ran.text
    assert ran.text.endswith("wrote baselines/wormhole_b0-n150-1x1/models/test_b.json")


def test_a_dry_run_prints_the_same_and_writes_nothing(desk: Desk) -> None:
    desk.store(A, stored(times(10.0, 10.1)))
    desk.record(tests={A: [10.0], B: [5.0]})
    before = desk.files()
    dry = desk.run("accept", "run.json", "--dry-run")
    assert dry.code == 0
    assert desk.files() == before
    wet = desk.run("accept", "run.json")
    told = dry.text.replace("would ", "").replace("; dry run: nothing is written", "")
    assert wet.text.startswith(told)
    assert desk.files() != before


def test_a_regression_needs_all_and_a_reason(desk: Desk) -> None:
    desk.store(A, stored(times(10.0, 10.1)))
    desk.record(tests={A: SLOW})
    refused = desk.run("accept", "run.json")
    assert refused.code == 1
    assert f"refused {A} on {N150.key}: latency 19.7 % slower, " in refused.text
    command = f'ttnn-perf baseline accept run.json --reason "why" -- {A}'
    assert f"accept: {command}" in refused.text
    assert desk.sessions(A) == [10.0, 10.1]

    without = desk.run("accept", "run.json", "--update", "all")
    assert (without.code, without.text) == (2, "")
    assert 'to accept what got worse, say --reason "why the change is right"' in without.errors

    ran = desk.run("accept", "run.json", "--reason", "float32")
    assert ran.code == 0
    assert desk.sessions(A) == [10.0, 10.1, 12.0, 12.05, 12.0]
    baseline = desk.find(A)
    assert baseline is not None
    assert baseline.metrics["latency"].since == 2
    assert baseline.accepted.reason == "float32"


def test_an_improvement_of_one_process_may_be_luck(desk: Desk) -> None:
    desk.store(A, stored(times(10.0, 10.1)))
    desk.record(tests={A: [8.0, 8.1, 7.9]})
    ran = desk.run("accept", "run.json")
    assert ran.code == 1
    assert "measured by one process, which may have been lucky" in ran.text
    desk.record("second.json", tests={A: [8.1, 8.0, 8.2]})
    assert desk.run("accept", "run.json", "second.json").code == 0
    assert desk.sessions(A) == [10.0, 10.1, 8.0, 8.1]


@pytest.mark.parametrize(
    ("test", "why", "remedy"),
    [
        (LIMITED, "pcc 0.9, limit 0.99", "no update accepts a broken limit"),
        (timed([]), "latency has no samples", "there is no number to store"),
        (timed([1.0], raised="ValueError: no"), "raised ValueError: no", "no number to store"),
        (timed([1.0], problems=["tolerance=5"]), "tolerance=5", "fix that"),
        (
            timed([1.0], findings=[{
                "code": "TTP901", "name": "pcc-below-limit", "severity": "error",
                "outcome": "FOUND", "reason": "NaN in the output", "evidence": [],
            }]),
            "TTP901 pcc-below-limit: NaN in the output",
            "ttnn-perf rules TTP901",
        ),
    ],
)  # fmt: skip
def test_what_is_never_accepted(desk: Desk, test: dict[str, Any], why: str, remedy: str) -> None:
    desk.record(tests={A: test, B: [5.0]})
    ran = desk.run("accept", "run.json", "--update", "all", "--reason", "because")
    assert ran.code == 1
    assert f"refused {A} on {N150.key}: " in ran.text
    assert why in ran.text
    assert remedy in ran.text
    assert desk.find(A) is None
    assert desk.sessions(B) == [5.0]


def test_records_of_one_commit_give_a_session_each_and_count_once(desk: Desk) -> None:
    desk.record(tests={A: [10.0]})
    desk.run("accept", "run.json")
    ran = desk.run("accept", "run.json")
    assert ran.text == "1 test already in the baselines\nnothing to write"
    assert desk.sessions(A) == [10.0]
    (desk.path / "copy.json").write_text((desk.path / "run.json").read_text())
    ran = desk.run("accept", "run.json", "copy.json")
    assert (ran.code, ran.text) == (2, "")
    assert "run.json and copy.json are records of one run, run-1: give one" in ran.errors

    more = [desk.record(f"{n}.json", tests={A: [10.0 + n / 10]}).name for n in (1, 2)]
    assert "2 sessions added" in desk.run("accept", *more).text
    assert desk.sessions(A) == [10.0, 10.1, 10.2]
    desk.commit = "def5678"
    desk.record("other.json", tests={A: [10.0]})
    ran = desk.run("accept", "run.json", "other.json")
    assert ran.code == 2
    assert "run.json is of commit abc1234, other.json of def5678: accept them one" in ran.errors


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (timed([10.0], facts={"trace": True}), "another configuration: trace is True"),
        (timed([10.0], raised="OSError"), "second.json: the test raised OSError"),
        ({"metrics": {"other": {"unit": "ms", "samples": [1]}}}, "latency is not in second.json"),
    ],
)
def test_records_that_contradict_each_other_are_refused(
    desk: Desk, second: dict[str, Any], why: str
) -> None:
    desk.record(tests={A: [10.0]})
    desk.record("second.json", tests={A: second})
    ran = desk.run("accept", "run.json", "second.json")
    assert ran.code == 1
    assert why in ran.text
    assert desk.find(A) is None


def test_every_hardware_has_its_own_key(desk: Desk) -> None:
    t3k = {"arch": "wormhole_b0", "board": "t3k", "mesh": "2x4"}
    desk.record(tests={A: [10.0], B: timed([3.0], hardware=t3k)})
    desk.record("t3k.json", tests={A: [4.0]}, hardware=t3k)
    assert desk.run("accept", "run.json", "t3k.json").code == 0
    pairs = [(key, test) for key in (N150, T3K) for test in (A, B)]
    assert [bool(desk.find(test, key)) for key, test in pairs] == [True, False, True, True]


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [(A, [A]), ("models/test_b.py", [B]), ("models", [A, B]), ("*::test_b[?]", [B])],
)
def test_tests_are_chosen(desk: Desk, selector: str, chosen: list[str]) -> None:
    desk.record(tests={A: [10.0], B: [5.0]})
    ran = desk.run("accept", "run.json", "models/test_a.py::test_aa")
    assert (ran.code, desk.find(A)) == (2, None)
    assert f"names no test in run.json; near to it: {A}" in ran.errors
    assert desk.run("accept", "run.json", "--update", "new", selector).code == 0
    assert [test for test in (A, B) if desk.find(test)] == chosen


def test_a_run_that_was_cut_short_is_taken_by_name_only(desk: Desk) -> None:
    desk.record(tests={A: [10.0], B: [5.0]}, complete=False)
    ran = desk.run("accept", "run.json")
    assert ran.code == 2
    assert "run.json: the run was cut short after 2 tests" in ran.errors
    assert f"ttnn-perf baseline accept run.json -- {A}" in ran.errors
    assert desk.run("accept", "run.json", A).code == 0
    assert (desk.sessions(A), desk.sessions(B)) == ([10.0], [])


def test_a_shifted_machine_sets_no_standard(desk: Desk) -> None:
    names = [f"test_all.py::test_{n}" for n in range(6)]
    for name in names:
        desk.store(name, stored(times(10.0, 10.0, 10.0)))
    desk.record(tests={**dict.fromkeys(names, FAST), A: [1.0]})
    ran = desk.run("accept", "run.json")
    assert "the machine, or a change they share" in ran.text
    assert "only new baselines are accepted: a shifted machine is no standard" in ran.text
    assert desk.sessions(names[0]) == [10.0, 10.0, 10.0]
    assert desk.sessions(A) == [1.0]


def test_a_record_of_another_commit_is_refused_unless_that_is_said(desk: Desk) -> None:
    """Of HEAD and of what HEAD contains it is taken, as of the merge that CI makes of HEAD."""
    repository = Repository(desk)
    repository.git("init", "-q", "-b", "main")
    commits = {}
    for name in ("first", "other", "main"):
        if name != "first":
            repository.git("switch", "-q", *(["-c", "other"] if name == "other" else ["main"]))
        (desk.path / f"{name}.py").touch()
        repository.commit(name)
        commits[name] = repository.git("rev-parse", "HEAD").strip()
    first, other, head = commits.values()

    def accept(commit: str | None, *words: str, **environment: Any) -> tuple[int, str]:
        about = {"commit": commit, **environment}
        desk.record(tests={A: [10.0]}, environment=about)
        ran = desk.run("accept", "run.json", "--dry-run", *words)
        return ran.code, ran.errors or ran.text.splitlines()[-2]

    would = (0, "would create baselines/wormhole_b0-n150-1x1/models/test_a.json")
    refused = f"which {head[:12]} does not contain: check that commit out, or say --other-commit"
    assert accept(head) == would
    assert accept(first) == would
    code, why = accept(other, branch="other")
    assert (code, why) == (
        2, f"ttnn-perf: run.json is of commit {other[:12]} of other, {refused}",
    )  # fmt: skip
    assert accept(other, "--other-commit") == would
    unknown = "f" * 40
    assert accept(unknown, parents=[first, head], pull_request="7") == would
    code, why = accept(unknown, parents=[first, other], pull_request="7")
    assert (code, why.endswith(f"of commit {unknown[:12]}, {refused}")) == (2, True), why
    code, why = accept(unknown, parents=[first, head])
    fetch = "which is not known here: fetch it, with git fetch --unshallow in a shallow clone"
    assert (code, fetch in why) == (2, True), why
    assert "run.json does not say which commit it is of: make sure that it is this one" in (
        desk.run("accept", str(desk.record(tests={A: [10.0]}, environment={})), "--dry-run").text
    )
