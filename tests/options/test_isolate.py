"""``--ttnn-perf-isolate`` and ``isolate``: in which process tests run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, entry_of, refusal_of
from tests.harness.project import QUICK, Ran, clean

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Both note the process that imports or runs them.
MODULE = """
    import os

    def note(what):
        with open("pids", "a") as stream:
            print(what, os.getpid(), file=stream)

    note("imported")

    def test_model(ttnn_perf):
        note("ran")
        ttnn_perf.record("latency", 10.0, unit="ms")
"""
#: A debugger that asks nobody.
DEBUGGER = """
    import pdb

    class Quiet(pdb.Pdb):
        def runcall(self, function, *args, **kwargs):
            return function(*args, **kwargs)
"""


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate without the isolation that the harness asks for; here is the orchestrator."""
    options = (*QUICK, "--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")
    result = project.pytester.runpytest_inprocess(*options, *arguments)
    return Ran(int(result.ret), clean("\n".join(result.outlines)), "\n".join(result.errlines))


def places(project: Project) -> set[tuple[str, str]]:
    """Return where modules were imported and tests ran, ``cwd`` or ``elsewhere``; once."""
    file = project.path / "pids"
    noted = [line.split() for line in file.read_text().splitlines()]
    file.unlink()
    return {(what, "here" if pid == str(os.getpid()) else "elsewhere") for what, pid in noted}


HERE = {("imported", "here"), ("ran", "here")}
ELSEWHERE = {("imported", "elsewhere"), ("ran", "elsewhere")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ELSEWHERE),
        (["--ttnn-perf-isolate=auto"], ELSEWHERE),
        (["--ttnn-perf-isolate", "process"], ELSEWHERE),
        (["--ttnn-perf-isolate", "inline"], HERE),
    ],
    ids=["default", "auto", "process", "inline"],
)
def test_tests_are_imported_and_run_where_asked(
    project: Project, arguments: list[str], expected: set[tuple[str, str]]
) -> None:
    project.write(test_model=MODULE)

    ran = gate(project, *arguments)

    assert counts_of(ran) == "1 passed"
    assert places(project) == expected
    assert entry_of(project)["metrics"]["latency"]["samples"] == [10]


def test_conftest_beside_the_tests_is_not_imported_here_either(project: Project) -> None:
    """The one at the top is, as in any pytest: it may declare options."""
    project.write(
        **{
            "conftest": MODULE.replace("imported", "top"),
            "models/conftest": MODULE.replace("imported", "beside"),
            "models/test_model": MODULE,
        }
    )

    gate(project)

    assert places(project) == ELSEWHERE | {
        ("top", "here"), ("top", "elsewhere"), ("beside", "elsewhere")
    }  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [["--pdb"], ["--trace", "--pdbcls=quiet:Quiet"], ["--setup-show"]], ids=" ".join
)
def test_what_needs_the_tests_in_this_process_gets_them(
    project: Project, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project.path)
    project.write(test_model=MODULE, quiet=DEBUGGER)

    ran = gate(project, *arguments)

    assert counts_of(ran) == "1 passed"
    assert places(project) == HERE


@pytest.mark.parametrize(
    "arguments", [[], ["--ttnn-perf-isolate=process"], ["-n", "2"]], ids=["auto", "asked", "-n 2"]
)
def test_collecting_alone_needs_no_worker(project: Project, arguments: list[str]) -> None:
    if "-n" in arguments:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    project.write(test_model=MODULE)

    ran = gate(project, "--collect-only", "-q", *arguments)

    assert ran.code == 0
    assert ran.text.splitlines()[0] == "test_model.py::test_model"
    assert places(project) == {("imported", "here")}
    assert project.files() == {"test_model.py"}


@pytest.mark.parametrize(
    ("isolate", "said"), [("process", 1), ("inline", 0)], ids=["in a worker", "here"]
)
def test_a_debugger_that_has_nobody_to_talk_to_says_where_it_has(
    project: Project, isolate: str, said: int
) -> None:
    # As a debugger ends that reads from nowhere.
    project.write(test_model="import bdb\ndef test_model(): raise bdb.BdbQuit")

    ran = gate(project, f"--ttnn-perf-isolate={isolate}")

    assert counts_of(ran) == "1 failed"
    hint = "a debugger works with --ttnn-perf-isolate inline, or --pdb"
    assert ran.text.count(hint) == said


@pytest.mark.parametrize("option", ["--pdb", "--trace"])
def test_debugging_in_a_worker_is_refused(project: Project, option: str) -> None:
    project.write(test_model=MODULE)

    ran = gate(project, option, "--ttnn-perf-isolate=process")

    assert refusal_of(ran) == (
        f"{option} works in this process only: use --ttnn-perf-isolate inline"
    )
    assert project.files() == {"test_model.py"}


def test_twin(project: Project) -> None:
    project.write(test_model=MODULE)

    configure(project, 'isolate = "inline"')
    gate(project)
    assert places(project) == HERE
    gate(project, "--ttnn-perf-isolate=process")
    assert places(project) == ELSEWHERE

    configure(project, 'isolate = "process"')
    refused = refusal_of(gate(project, "--pdb"))
    assert refused == "--pdb works in this process only: use --ttnn-perf-isolate inline"
