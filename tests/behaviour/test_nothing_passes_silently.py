"""What could not be measured, compared or understood never looks like a pass."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.behaviour.model import (
    counts_of,
    failure_of,
    metric,
    refusal_of,
    write_latency,
    write_model,
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


def test_percentage_given_as_a_fraction_fails_the_test(project: Project) -> None:
    project.write(
        test_model="""
            import pytest

            @pytest.mark.ttnn_perf(max_regression={'latency': 5})
            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
        """
    )

    ran = project.pytest("--ttnn-perf")

    assert failure_of(ran).splitlines()[0] == (
        "max_regression latency: expected a fraction below 1 (0.05 is 5 %), found 5"
    )
    assert "record it with" not in ran.text


def test_baseline_in_the_folder_of_another_key_is_refused(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    file = project.baseline()
    key = file.parent.name
    file.write_text(file.read_text().replace('"arch": "host"', '"arch": "blackhole"'))

    refused = refusal_of(project.pytest("--ttnn-perf"))

    other = key.replace("host", "blackhole")
    assert refused == f"{file}: it is for {other} and lies in the folder {key}"


def test_gain_that_was_not_stored_is_not_called_accepted(project: Project) -> None:
    write_model(project, latency=metric(100))
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=metric(50), other=metric(5))

    ran = project.pytest("--ttnn-perf-update=new")

    rows = [line for line in ran.text.splitlines() if "test_model  latency" in line]
    assert rows[0].endswith("IMPROVED (provisional)")
    assert "NO_BASELINE, recorded" in ran.text
    assert "keep it with: pytest test_model.py::test_model --ttnn-perf-update" in ran.text


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


def test_record_of_a_run_that_stopped_at_a_failure_is_not_complete(project: Project) -> None:
    project.write(
        test_model="""
            def test_measured(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")

            def test_plain():
                assert False

            def test_never_reached(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
        """
    )

    project.pytest("--ttnn-perf-update=new", "-x", "--ttnn-perf-json=run.json")

    assert json.loads((project.path / "run.json").read_text())["complete"] is False
    assert project.cli("gate", "run.json").code == 1


def test_an_option_after_the_files_is_refused_and_not_ignored(project: Project) -> None:
    write_latency(project, 12.5)

    ran = project.pytest_process("test_model.py", "--", "--ttnn-perf-all")

    if "file or directory not found: --ttnn-perf-all" not in ran.errors:  # of older pytests
        assert "--ttnn-perf-all: a conftest loaded the plugin too late, or the option comes" in (
            ran.text + ran.errors
        )
    assert ran.code == 4
