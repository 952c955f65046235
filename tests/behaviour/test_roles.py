"""``TTNN_PERF_ROLE``: what a conftest is told of the process that loads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

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
