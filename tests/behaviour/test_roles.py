"""``TTNN_PERF_ROLE``: what a conftest is told of the process that loads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project

ROLE = "TTNN_PERF_ROLE"
#: Notes the role wherever a project may look.
CONFTEST = """
    import os
    import pathlib

    import pytest

    def note(what):
        with open("roles", "a") as stream:
            print(os.environ.get("TTNN_PERF_ROLE"), what, file=stream)

    note("import")

    def pytest_addoption():
        note("addoption")

    def pytest_configure():
        note("configure")

    @pytest.fixture
    def noting():
        note("fixture")

    def pytest_unconfigure():
        note("unconfigure")
"""
MODEL = """
    def test_model(ttnn_perf, noting):
        ttnn_perf.record("latency", 10.0, unit="ms")
"""
SESSION = ["import", "addoption", "configure", "unconfigure"]
TESTS = ["import", "addoption", "configure", "fixture", "unconfigure"]
GATE = ("--ttnn-perf", "--ttnn-perf-missing=ignore")


@pytest.fixture
def noted(project: Project) -> Project:
    project.write(conftest=CONFTEST, test_model=MODEL)
    return project


def roles(project: Project) -> dict[str, list[str]]:
    """Return what was noted by each role, in that order."""
    found: dict[str, list[str]] = {}
    for line in (project.path / "roles").read_text().splitlines():
        role, what = line.split()
        found.setdefault(role, []).append(what)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {"None": TESTS}),
        ([*GATE, "--ttnn-perf-isolate=process"], {"orchestrator": SESSION, "worker": TESTS}),
        ([*GATE, "--ttnn-perf-isolate=inline"], {"inline": TESTS}),
        ([*GATE, "--ttnn-perf-isolate=auto", "--collect-only"], {"inline": SESSION}),
    ],
    ids=["idle", "process", "inline", "collect"],
)
def test_conftest_files_find_their_role_and_the_environment_is_left_as_it_was(
    noted: Project,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    expected: dict[str, list[str]],
) -> None:
    monkeypatch.setenv(ROLE, "mine")

    ran = noted.pytest(*arguments)

    assert ran.code == 0, ran.text
    found = roles(noted)
    if "mine" in found:  # nobody has touched it
        found["None"] = found.pop("mine")
    assert found == expected
    assert os.environ[ROLE] == "mine"


def test_the_environment_is_as_it_was_after_a_refused_run(noted: Project) -> None:
    (noted.path / "baselines").touch()
    assert "found a file" in refusal_of(noted.pytest(*GATE))
    assert ROLE not in os.environ


def test_the_conftest_of_the_documentation_does_it_once(noted: Project) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "extend.md").read_text()
    block = page.partition("## Do something once per run")[2].split("```")[1]
    (noted.path / "conftest.py").write_text(block.removeprefix("py\n"))
    (noted.path / "test_model.py").write_text("def test_model(ttnn_perf): ttnn_perf.measure(int)")

    ran = noted.pytest(*GATE, "--ttnn-perf-isolate=process")

    assert counts_of(ran) == "1 passed"
    lines = (noted.path / "runs.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["started", "ended"]
    assert lines[1] == "ended with 0"


def test_a_rank_of_a_launcher_runs_its_tests_itself(
    noted: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        assert noted.pytest(*GATE, "--ttnn-perf-isolate=auto").code == 0
    assert roles(noted) == {"inline": TESTS * 2}
