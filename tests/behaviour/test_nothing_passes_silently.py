"""What could not be measured, compared or understood never looks like a pass."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    refusal_of,
)

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

HOST = {"arch": "host", "board": "x"}


def write_record(project: Project, **fields: object) -> None:
    record = {"format": 1, "hardware": HOST, "tests": {}, **fields}
    (project.path / "run.json").write_text(json.dumps(record))
    (project.path / "baselines").mkdir(exist_ok=True)


def test_record_in_which_nothing_is_gated_does_not_pass(project: Project) -> None:
    observed = {"unit": "ns", "samples": [1], "gated": False}
    write_record(project, tests={"t.py::t": {"metrics": {"m": observed}}})

    ran = project.cli("gate", "run.json")

    assert ran.code == 1
    assert ran.text.splitlines()[-1].startswith("failed: nothing was gated")


def test_metric_with_a_baseline_is_gated_whatever_the_run_says(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            @pytest.mark.ttnn_perf
            def test_model():
                pass
        """
    )
    project.pytest("--ttnn-perf-update=new")
    stored = project.baseline()
    document = json.loads(stored.read_text())
    document["tests"]["test_model"]["metrics"]["call_time"]["sessions"] = [[1, 0, 1]]
    stored.write_text(json.dumps(document))
    project.write(test_model="def test_model(): pass")

    ran = project.pytest("--ttnn-perf-all")

    assert counts_of(ran) == "1 failed"
    counted = "1 test gated; 1 failed; metrics: 1 REGRESSED"
    assert counted in ran.text.splitlines()


def test_plugin_that_a_conftest_loads_too_late_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.write(conftest="pytest_plugins = ['pytest_ttnn_perf.plugin']")
    project.write(test_model="def test_model(): pass")

    refused = refusal_of(project.pytest_process("--ttnn-perf"))

    assert refused == (
        "--ttnn-perf: a conftest loaded the plugin too late, or the option comes after --; "
        "-p pytest_ttnn_perf.plugin loads it in time"
    )


def test_closed_pipe_does_not_hide_a_failed_gate(project: Project) -> None:
    observed = {"unit": "ns", "samples": [1]}
    write_record(project, tests={f"t.py::t{i}": {"metrics": {"m": observed}} for i in range(2000)})
    command = "set -o pipefail; python -m pytest_ttnn_perf.cli.main gate run.json | true"
    python = f"{sys.executable} -m"

    ran = project.run("bash", "-c", command.replace("python -m", python))

    assert ran.code == 1
    assert ran.errors == ""
