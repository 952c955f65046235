"""The marker: what it may say, where it may stand, and what it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import MODEL, counts_of, entry_of, failure_of, refusal_of

if TYPE_CHECKING:
    from tests.harness.project import Project

KNOWN = (
    "warmup, iterations, pcc, batch, tolerance, max_regression, target, waive, gate, region, "
    "sweep, require"
)


def write_marked(project: Project, keywords: str, milliseconds: float = 12.5) -> None:
    """Write a test with a marker; it records its time from a file, which later calls change."""
    project.write(
        test_model=f"""
            from pathlib import Path

            import pytest

            @pytest.mark.ttnn_perf({keywords})
            def test_model(ttnn_perf):
                text = Path(__file__).with_name("number").read_text()
                ttnn_perf.record("latency", float(text), unit="ms")
        """
    )
    (project.path / "number").write_text(str(milliseconds))


def test_misspelt_keyword_is_refused_with_the_one_that_was_meant(project: Project) -> None:
    write_marked(project, "iteration=3")

    assert refusal_of(project.pytest("--ttnn-perf")) == (
        f"{MODEL}: @pytest.mark.ttnn_perf does not know iteration; it knows {KNOWN}; "
        "did you mean iterations?"
    )


@pytest.mark.parametrize(
    ("keyword", "problem"),
    [
        ("warmup=True", "warmup: expected a whole number of at least 0, found True"),
        ("iterations=2.5", "iterations: expected a whole number of at least 1, found 2.5"),
        ("pcc=99", "pcc: expected a correlation from -1 to 1, found 99"),
        (
            "max_regression={'latency': float('nan')}",
            "max_regression: expected a fraction of at least 0 (0.05 is 5 %), or one per metric, "
            "found {'latency': nan}",
        ),
        (
            "target=10",
            """target: expected a goal per metric, e.g. {"wall_time": "10 ms"}, found 10""",
        ),
        (
            "waive=['TTP203']",
            """waive: expected a reason per rule, e.g. {"TTP203": "converted once"}, """
            "found ['TTP203']",
        ),
        (
            "waive={'TTP203': ' '}",
            """waive: expected a reason per rule, e.g. {"TTP203": "converted once"}, """
            "found {'TTP203': ' '}",
        ),
    ],
)
def test_wrong_value_is_refused(project: Project, keyword: str, problem: str) -> None:
    write_marked(project, keyword)

    ran = project.pytest("--ttnn-perf")

    assert refusal_of(ran) == f"{MODEL}: @pytest.mark.ttnn_perf: {problem}"


def test_nearer_markers_win_keyword_by_keyword(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            pytestmark = pytest.mark.ttnn_perf(warmup=1, iterations=1, waive={"TTP101": "module"})

            @pytest.mark.ttnn_perf(iterations=2, waive={"TTP101": "class"})
            class TestModel:
                @pytest.mark.ttnn_perf(waive={"TTP104": "function"})
                def test_model(self, ttnn_perf):
                    ttnn_perf.measure(int)
        """
    )

    project.pytest("--ttnn-perf")

    entry = entry_of(project, "test_model.py::TestModel::test_model")
    assert len(entry["metrics"]["wall_time"]["warmup"]) == 1
    assert len(entry["metrics"]["wall_time"]["samples"]) == 2
    assert entry["waived"] == {"TTP104": "function"}


@pytest.mark.parametrize("option", ["tolerance", "max_regression", "target"])
@pytest.mark.parametrize("arguments", ["--ttnn-perf", "--ttnn-perf-update=new"])
def test_limit_of_a_metric_that_is_not_recorded_fails_the_test(
    project: Project, option: str, arguments: str
) -> None:
    write_marked(project, f"{option}={{'latncy': 0.05}}")

    ran = project.pytest(arguments, "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed"
    problem = f"{option} names latncy, which the test did not record (recorded: latency)"
    assert failure_of(ran) == problem
    assert ran.text.splitlines().count(problem) == 1, "told once"
    assert not (project.path / "baselines").exists()
