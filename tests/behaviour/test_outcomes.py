"""Tests that do not simply pass or fail: expected failures, skips, errors around the call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import MODEL, counts_of, entry_of, failure_of, metric, write_model

if TYPE_CHECKING:
    from tests.harness.project import Project

REGRESSED = (
    "REGRESSED: latency 25.50 ms, baseline 12.50 ms: 104.0 % slower, limit 9.1 % "
    "(1 sample against 1 session; sample noise assumed; one run seen)"
)


def add_conftest(project: Project, marker: str) -> None:
    """Give the model's test a marker from outside."""
    project.write(
        conftest=f"""
            import pytest

            def pytest_collection_modifyitems(items):
                for item in items:
                    item.add_marker({marker})
        """
    )


def test_regressed_xfail_fails(project: Project) -> None:
    write_model(project, latency=metric(12.5))
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=metric(25.5))
    add_conftest(project, "pytest.mark.xfail")

    ran = project.pytest("--ttnn-perf")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert failure_of(ran).splitlines()[0] == REGRESSED


MARKED = "@pytest.mark.ttnn_perf\n@pytest.mark.xfail\n"


@pytest.mark.parametrize(
    "source",
    [
        f"{MARKED}def test_model(ttnn_perf):\n    ttnn_perf.measure(int)\n    assert False",
        f"{MARKED}def test_model(): assert False",
        "@pytest.mark.ttnn_perf\ndef test_model(): pytest.xfail('not yet')",
        "class TestModel(unittest.TestCase):\n    @pytest.mark.ttnn_perf\n"
        "    @unittest.expectedFailure\n    def test_model(self): self.fail()",
    ],
    ids=["measured", "whole call", "pytest.xfail", "unittest"],
)
def test_expected_failure_stays_one_and_is_not_recorded(project: Project, source: str) -> None:
    project.write(test_model=f"import unittest\nimport pytest\n\n{source}\n")

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert (ran.code, counts_of(ran)) == (0, "1 xfailed")
    assert project.files() == {"test_model.py", ".ttnn_perf/.gitignore", "run.json"}
    assert json.loads((project.path / "run.json").read_text())["tests"] == {}


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("@pytest.mark.skip\ndef test_model(ttnn_perf): pass", "1 skipped"),
        ("def test_model(ttnn_perf): pytest.skip('no device')", "1 skipped"),
        (
            "def test_model(ttnn_perf):\n"
            "    ttnn_perf.record('latency', 1, unit='ms')\n"
            "    pytest.skip('no device')",
            "1 skipped",
        ),
    ],
    ids=["marker", "call", "after recording"],
)
def test_test_that_did_not_run_is_not_recorded(project: Project, source: str, counts: str) -> None:
    project.write(test_model=f"import pytest\n\n{source}\n")

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert counts_of(ran) == counts
    assert project.files() == {"test_model.py", ".ttnn_perf/.gitignore", "run.json"}
    assert json.loads((project.path / "run.json").read_text())["tests"] == {}
    assert "=== ttnn-perf ===\nno test was gated: those that ran are not marked" in ran.text


def test_test_that_cannot_be_set_up_is_recorded_as_such_and_never_passes(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            @pytest.fixture
            def device():
                raise RuntimeError("no device")

            @pytest.mark.ttnn_perf
            def test_model(device):
                pass
        """
    )

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert counts_of(ran) == "1 error"
    assert entry_of(project)["raised"] == "in its setup: RuntimeError: no device"
    assert not (project.path / "baselines").exists()
    (project.path / "baselines").mkdir()
    gated = project.cli("gate", "run.json")
    assert gated.code == 1
    assert "the test raised in its setup: RuntimeError: no device" in gated.text


TEARDOWN_FAILS = """
    import pytest

    @pytest.fixture
    def device():
        yield
        raise RuntimeError("device lost")

    def test_model(ttnn_perf, device):
        ttnn_perf.record("latency", 12.5, unit="ms")
"""


def test_result_of_a_test_whose_teardown_failed_is_not_written(project: Project) -> None:
    project.write(test_model=TEARDOWN_FAILS)

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 passed, 1 error"
    assert not (project.path / "baselines").exists()
    problem = "nothing was written: the test failed after its call, in its teardown"
    assert f"{MODEL}: {problem}" in ran.text.splitlines()
    assert "record it with" not in ran.text


@pytest.mark.parametrize(
    "source",
    [
        """
            def test_model(ttnn_perf, subtests):
                for case in range(2):
                    with subtests.test(case=case):
                        ttnn_perf.record(f"latency_{case}", 12.5, unit="ms")
        """,
        """
            import unittest

            import pytest

            class TestModel(unittest.TestCase):
                @pytest.mark.ttnn_perf
                def test_model(self):
                    for case in range(2):
                        with self.subTest(case=case):
                            pass
        """,
    ],
    ids=["fixture", "unittest"],
)
def test_test_with_subtests_is_judged_once_at_its_end(project: Project, source: str) -> None:
    pytest.importorskip("_pytest.subtests", reason="this pytest has no subtests")
    project.write(test_model=source)

    ran = project.pytest("--ttnn-perf-update=new")

    # How passed subtests are counted differs between versions of pytest.
    assert (ran.code, counts_of(ran).split(",")[0]) == (0, "1 passed")
    assert "1 test gated; 1 written; " in ran.text
