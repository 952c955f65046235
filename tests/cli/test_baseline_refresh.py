"""``ttnn-perf baseline refresh --from-history``: which runs become baselines, and which do not."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.gate.store import BaselineStore
from tests.harness.baselines import N150
from tests.harness.golden import assert_golden
from tests.harness.histories import TEST, Histories, edited, wobbled

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.baseline import TestBaseline
    from tests.harness.project import Project, Ran


@pytest.fixture
def histories(histories: Histories, monkeypatch: pytest.MonkeyPatch) -> Histories:
    """Return records that say themselves of which branch they are: git is not needed."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(histories.path.parent))
    return histories


def night(histories: Histories, value: float, test: str = TEST, **more: Any) -> None:
    """Write the run of one more night of main; values differ by some tenths of a per cent."""
    day = len(histories.made)
    about = {"branch": "main", "parents": [f"{day:040x}"] if day else []}
    more["environment"] = {**about, **more.get("environment", {})}
    histories.record(f"{day + 1:040x}", {test: wobbled(value, day)}, day=day, **more)


def accept(histories: Histories, project: Project) -> None:
    ran = project.cli("baseline", "accept", str(histories.made[-1]), "--reason", "right")
    assert ran.code == 0, ran.errors


def accepted_nights(histories: Histories, project: Project, count: int) -> None:
    for _ in range(count):
        night(histories, 10.0)
        accept(histories, project)


def refresh(project: Project, *words: str) -> Ran:
    return project.cli("baseline", "refresh", "--from-history", *words)


def stored(project: Project, test: str = TEST) -> TestBaseline:
    found = BaselineStore(project.path / "baselines").find(N150, test)
    assert found is not None
    return found


def medians(project: Project) -> list[float]:
    return [session.median for session in stored(project).metrics["latency"].sessions]


def refused(ran: Ran) -> str:
    """Return why a test was refused, in one line."""
    assert (ran.code, ran.errors) == (1, "")
    text = " ".join(ran.text.split())
    assert f"refused {TEST} on wormhole_b0-n150-1x1: " in text
    assert "wrote" not in text
    return text


def test_the_last_runs_become_the_sessions(histories: Histories, project: Project) -> None:
    accepted_nights(histories, project, 1)
    for _ in range(8):
        night(histories, 10.1)
    dry = refresh(project, "--branch", "main", "--last", "6", "--dry-run")
    assert "dry run: nothing is written" in dry.text
    assert medians(project) == [10.0]
    ran = refresh(project, "--branch", "main", "--last", "6", TEST)
    assert (ran.code, ran.errors) == (0, "")
    assert medians(project) == [pytest.approx(wobbled(10.1, day)) for day in range(3, 9)]
    found = stored(project)
    sessions = found.metrics["latency"].sessions
    assert [session.run for session in sessions] == [f"run-{day:03}" for day in range(3, 9)]
    assert found.accepted.commit == f"{9:040x}"[:12]
    assert found.accepted.reason == "refreshed from 6 runs of main, 2026-09-04 to 2026-09-09"
    assert found.metrics["latency"].accepted_value == 10.0


def test_a_slow_creep_is_refused_by_name(histories: Histories, project: Project) -> None:
    """0.3 % a night, for 30 nights: no single night is beyond the limit."""
    accepted_nights(histories, project, 3)
    for day in range(1, 31):
        night(histories, 10.0 * 1.003**day)
    ran = refresh(project, "--branch", "main", "--last", "20")
    text = refused(ran)
    assert "latency" in text
    command = text.partition("accept: ")[2].partition(" -- ")[0]
    assert "run-032.json" in command
    assert "dry run" not in text
    assert len(medians(project)) == 3
    assert_golden("baseline/refresh_refused", ran.text)


def test_a_creep_does_not_get_in_by_many_refreshes(histories: Histories, project: Project) -> None:
    """Every week the last five nights: each time only a little has changed."""
    accepted_nights(histories, project, 3)
    outcomes = []
    for day in range(1, 41):
        night(histories, 10.0 * 1.003**day)
        if day % 5 == 0:
            outcomes.append(refresh(project, "--last", "5").code)
    assert outcomes == [0, *outcomes[1:]]
    assert outcomes[-1] == 1
    centre = sorted(medians(project))[len(medians(project)) // 2]
    assert centre < 10.0 * 1.06
    assert stored(project).metrics["latency"].accepted_value in {10.0, None}
    # Somebody who accepts it on purpose begins anew.
    text = " ".join(refresh(project, "--last", "5").text.split())
    words = shlex.split(text.partition("accept: ")[2].partition(" no git")[0])
    assert words[:3] == ["ttnn-perf", "baseline", "accept"]
    assert project.cli(*words[1:]).code == 0
    assert stored(project).metrics["latency"].accepted_value is None


def test_what_got_faster_is_taken(histories: Histories, project: Project) -> None:
    accepted_nights(histories, project, 3)
    for _ in range(5):
        night(histories, 8.0)
    ran = refresh(project, "--last", "5")
    assert (ran.code, ran.errors) == (0, "")
    assert "accepted" in ran.text
    assert stored(project).metrics["latency"].accepted_value is None


def test_a_run_that_lacks_a_time_does_not_count(histories: Histories, project: Project) -> None:
    for day in range(4):
        night(histories, 10.0)
        with edited(histories.made[-1]) as read:
            metrics = read["tests"][TEST]["metrics"]
            metrics["warm_latency"] = {"unit": "ms", "samples": [9.0]}
            if day == 1:
                metrics["latency"] |= {"samples": [], "note": "lost"}
    assert refresh(project, "--last", "4").code == 0
    assert len(medians(project)) == 3


def test_runs_that_do_not_count(histories: Histories, project: Project) -> None:
    """Pull requests, uncommitted changes, runs that were cut short, and tests that raised."""
    night(histories, 10.0)
    night(histories, 20.0, environment={"pull_request": "7"})
    night(histories, 30.0, environment={"dirty": True})
    night(histories, 40.0, complete=False)
    night(histories, 50.0)
    with edited(histories.made[-1]) as read:
        read["tests"][TEST]["raised"] = "RuntimeError: device lost"
    night(histories, 10.0)
    text = refused(refresh(project, "--last", "4"))
    assert "expected 3 whole runs, found 2" in text
    night(histories, 10.0)
    assert refresh(project, "--last", "5").code == 0
    assert max(medians(project)) < 10.1


def test_a_loss_of_accuracy_is_not_taken_with_it(histories: Histories, project: Project) -> None:
    def with_pcc(value: float) -> None:
        night(histories, 10.0)
        with edited(histories.made[-1]) as read:
            pcc = {"unit": "", "kind": "accuracy", "samples": [value]}
            read["tests"][TEST]["metrics"]["pcc"] = pcc

    with_pcc(0.9995)
    accept(histories, project)
    for value in (0.9995, 0.98, 0.9995):
        with_pcc(value)
    assert "pcc 2.0 % lower, limit 0.2 % (0.98, baseline 0.9995)" in refused(
        refresh(project, "--last", "3")
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--last", "2"), "expected a whole number from 3 to 20"),
        (("--branch", "nowhere"), "is in no git repository: the branches of runs"),
        (("no_such_test",), "no_such_test names no test in the 3 runs of the main branch"),
    ],
)
def test_what_cannot_be_meant(
    histories: Histories, project: Project, words: tuple[str, ...], message: str
) -> None:
    for _ in range(3):
        night(histories, 10.0)
    ran = refresh(project, *words)
    assert (ran.code, ran.text) == (2, "")
    assert message in ran.errors


def test_runs_of_a_database_are_as_good_as_those_in_files(
    histories: Histories, project: Project
) -> None:
    database = ("--history", "sqlite:///perf.db")
    accepted_nights(histories, project, 1)
    for _ in range(3):
        night(histories, 14.0)
    assert project.cli("history", "import", *database).code == 0
    for file in histories.made:
        file.unlink()
    text = refused(refresh(project, "--last", "3", *database))
    # What is in no file is written to one first.
    command = text.partition("history export -o . && ")[2].partition(" --reason")[0]
    assert project.cli("history", "export", "-o", ".", *database).code == 0
    assert project.cli(*shlex.split(command)[1:], "--reason", "larger model").code == 0
