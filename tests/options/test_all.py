"""``--ttnn-perf-all``, ``all``, and the settings that say which tests count and what is gated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, counts_of, entry_of, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

PLAIN = "test_plain.py::test_plain"


@pytest.fixture
def plain(project: Project) -> Project:
    """A project whose only test knows nothing of us."""
    project.write(test_plain="def test_plain(): pass")
    return project


def test_plain_tests_are_not_measured_without_it(plain: Project) -> None:
    ran = plain.pytest("--ttnn-perf")

    assert counts_of(ran) == "1 passed"
    assert plain.files() == {"test_plain.py"}


def test_plain_tests_are_recorded_and_not_gated(plain: Project) -> None:
    ran = plain.pytest("--ttnn-perf-all")

    assert counts_of(ran) == "1 passed"
    assert "0 tests gated; 1 recorded only" in ran.text.splitlines()
    entry = entry_of(plain, PLAIN)
    assert entry["metrics"]["call_time"]["gated"] is False
    assert len(entry["metrics"]["call_time"]["samples"]) == 1
    assert entry["verdicts"] == {}


def test_all_has_its_twin(plain: Project) -> None:
    configure(plain, "all = true")

    plain.pytest("--ttnn-perf")

    assert list(record_of(plain)["tests"]) == [PLAIN]


def test_gate_call_time_gates_plain_tests(plain: Project) -> None:
    configure(plain, "gate_call_time = true")

    ran = plain.pytest("--ttnn-perf-all")

    assert counts_of(ran) == "1 failed"
    assert entry_of(plain, PLAIN)["verdicts"]["call_time"]["outcome"] == "NO_BASELINE"


def test_marked_tests_stay_gated(project: Project) -> None:
    project.write(
        test_plain="""
            import pytest

            @pytest.mark.ttnn_perf
            def test_marked(): pass

            def test_plain(): pass
        """
    )

    assert counts_of(project.pytest("--ttnn-perf-all")) == "1 failed, 1 passed"


@pytest.mark.parametrize(
    ("gate_call_time", "counts"), [("false", "1 passed"), ("true", "1 failed")]
)
def test_foreign_markers_count_as_ours(project: Project, gate_call_time: str, counts: str) -> None:
    (project.path / "pytest.ini").write_text("[pytest]\nmarkers =\n  models_perf\n  slow\n")
    configure(
        project,
        'markers = ["other", "models_perf"]',
        f"gate_call_time = {gate_call_time}",
    )
    project.write(
        test_plain="""
            import pytest

            @pytest.mark.models_perf
            def test_foreign(): pass

            @pytest.mark.slow
            def test_slow(): pass
        """
    )

    ran = project.pytest("--ttnn-perf", "-k", "test_foreign or test_slow")

    assert counts_of(ran) == {"1 passed": "2 passed"}.get(counts, "1 failed, 1 passed")
    assert list(record_of(project)["tests"]) == ["test_plain.py::test_foreign"]
