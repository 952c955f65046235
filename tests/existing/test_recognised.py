"""``observe = "gate"``: tests that measure with a known helper are gated without a marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, entry_of, outcomes
from tests.existing.idioms import IDIOMS, change_numbers, repeat_sessions, write_project
from tests.existing.test_idioms import MEASURED

if TYPE_CHECKING:
    from tests.harness.project import Project

PLAIN = """
import numpy as np
from models.common.utility_functions import comp_pcc

def test_functional():
    assert comp_pcc(np.arange(4.0), np.arange(4.0))[0]

def test_plain():
    pass
"""


def without_marker(text: str) -> str:
    return text.replace("@marked", "")


def write(project: Project, **others: str) -> None:
    by_clock = next(idiom for idiom in IDIOMS if idiom.by_clock)
    tests = {name: without_marker(idiom.text) for name, idiom in MEASURED.items()}
    write_project(project, without_marker(by_clock.text), **tests, **others)
    (project.path / "test_model.py").unlink()
    (project.path / "ttnn_perf.toml").write_text('observe = "gate"\n')


def test_unmarked_tests_are_gated_and_others_are_left_alone(project: Project) -> None:
    write(project, test_other=PLAIN)

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == f"{len(MEASURED) + 2} passed", ran.text
    for test, idiom in MEASURED.items():
        metrics = entry_of(project, f"{test}.py::test_model")["metrics"]
        gated = {name for name, metric in metrics.items() if metric.get("gated", True)}
        assert gated == set(idiom.gated), idiom.name
    assert f"{len(MEASURED)} tests gated" in ran.text

    repeat_sessions(project)
    change_numbers(project, 1.06)
    slower = project.pytest("--ttnn-perf")
    assert counts_of(slower) == f"{len(MEASURED)} failed, 2 passed", slower.text
    for test in MEASURED:
        assert "REGRESSED" in outcomes(project, f"{test}.py::test_model").values()


def test_one_that_measured_and_no_longer_does_is_no_pass(project: Project) -> None:
    write(project)
    project.pytest("--ttnn-perf-update=new")
    (project.path / "test_3.py").write_text("def test_model():\n    pass\n")

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == f"1 failed, {len(MEASURED) - 1} passed", ran.text
    assert "no call of a helper that measures" in ran.text


def test_it_holds_in_workers_and_side_by_side(project: Project) -> None:
    write(project, test_other=PLAIN)
    options = ("--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "0")

    ran = project.pytest(*options, "--ttnn-perf-update=new")

    assert counts_of(ran) == f"{len(MEASURED) + 2} passed", ran.text
    assert f"{len(MEASURED)} tests gated" in ran.text
