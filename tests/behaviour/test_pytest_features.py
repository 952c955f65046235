"""A failed verdict is an ordinary failure to every other part of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    record_of,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.fixture
def regressed(project: Project) -> Project:
    """A project of three tests, of which the first one in the file got slower."""
    project.write(
        test_model="""
            import os

            def test_slow(ttnn_perf):
                ttnn_perf.record("latency", 25.5 if os.path.exists("slow") else 12.5, unit="ms")

            def test_same(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")

            def test_plain():
                pass
        """
    )
    project.pytest("--ttnn-perf-update=new")
    (project.path / "slow").touch()
    return project


def test_maxfail_stops_at_a_verdict(regressed: Project) -> None:
    # At once in one process only: with workers, a suspect waits until all tests are measured.
    ran = regressed.pytest("--ttnn-perf", "-x", "--ttnn-perf-isolate", "inline")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert list(record_of(regressed)["tests"]) == ["test_model.py::test_slow"]


def test_wrapper_of_a_conftest_sees_the_failed_report(regressed: Project) -> None:
    regressed.write(
        conftest="""
            import pytest

            SEEN = pytest.StashKey()

            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_makereport(item, call):
                report = yield
                item.stash.setdefault(SEEN, {})[report.when] = report.outcome
                return report

            def pytest_runtest_teardown(item):
                print("conftest saw", item.name, item.stash[SEEN])
        """
    )

    # In one process only: a worker does not judge, so that its hooks see what the test did.
    ran = regressed.pytest("--ttnn-perf", "-s", "--ttnn-perf-isolate", "inline")

    seen = [line.lstrip("F.") for line in ran.text.splitlines() if "conftest saw" in line]
    assert [line.removeprefix("test_model.py ").lstrip("F.") for line in seen] == [
        "conftest saw test_slow {'setup': 'passed', 'call': 'failed'}",
        "conftest saw test_same {'setup': 'passed', 'call': 'passed'}",
        "conftest saw test_plain {'setup': 'passed', 'call': 'passed'}",
    ]


@pytest.mark.skipif(pytest.version_tuple < (8, 0), reason="pytest did not do so before")
def test_after_a_verdict_that_ends_the_run_all_fixtures_are_taken_down_with_its_test(
    project: Project,
) -> None:
    project.write(
        test_model="""
        import pytest

        @pytest.fixture(scope="module", autouse=True)
        def device():
            yield
            raise RuntimeError("cannot be closed")

        def test_new(ttnn_perf): ttnn_perf.record("latency", 1.0, unit="ms")
        def test_never(ttnn_perf): ttnn_perf.record("latency", 1.0, unit="ms")
        """
    )
    ran = project.pytest("--ttnn-perf", "-x", "--ttnn-perf-isolate=process")
    assert "ERROR at teardown of test_new" in ran.text
    assert (counts_of(ran), ran.code) == ("1 failed, 1 error", 1)
