"""``--ttnn-perf-benchmark-json`` and ``benchmark_json``: results for dashboards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.behaviour.model import entry_of, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project

SCHEMA = Path(__file__).parents[2] / "docs/reference/benchmark-run.schema.json"
MODEL = """
    import pytest

    @pytest.mark.ttnn_perf(batch=8, target={"tokens/s.decode": 40})
    def test_llama(ttnn_perf):
        ttnn_perf.facts(model="llama3.1-8b", input_sequence_length=128, output_sequence_length=64,
                        num_layers=32, precision="bfp8", model_type="llm", mode="eager")
        ttnn_perf.record("tokens/s.decode", [36.0, 35.9, 36.1], unit="tok/s")
        ttnn_perf.record("pcc", 0.998, kind="accuracy", unit="")
"""
TEST = "test_model.py::test_llama"


def written(project: Project, folder: str = "out") -> list[dict[str, Any]]:
    """Return what was written, held to the schema."""
    documents = []
    for file in sorted((project.path / folder).iterdir()):
        document = json.loads(file.read_text(), parse_constant=pytest.fail)
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        documents.append(document)
    return documents


def test_what_is_known_is_written_and_the_rest_is_null(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REPOSITORY", "RUN_ID", "JOB_ID", "ACTOR", "TRIGGERING_ACTOR", "SERVER_URL",
                 "HEAD_REF", "REF_NAME"):  # fmt: skip
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    project.write(test_model=MODEL)

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-benchmark-json=out")

    assert ran.code == 0, ran.text
    (document,) = written(project)
    known = {name: value for name, value in document.items() if value is not None}
    for name in ("run_start_ts", "run_end_ts", "device_hostname", "device_info", "config_params"):
        known.pop(name)
    measurements = known.pop("measurements")
    assert known == {
        "run_type": "ttnn_perf",
        "ml_model_name": "llama3.1-8b",
        "ml_model_type": "llm",
        "num_layers": 32,
        "batch_size": 8,
        "precision": "bfp8",
        "input_sequence_length": 128,
        "output_sequence_length": 64,
    }
    found = [(each["step_name"], each["name"], each["value"], each["target"])
             for each in measurements]  # fmt: skip
    assert found == [("decode", "tokens/s", 36.0, 40), ("run", "pcc", 0.998, None)]
    assert document["device_info"]["arch"] == "host"


def test_where_it_comes_from(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "GITHUB_REPOSITORY": "tenstorrent/tt-metal", "GITHUB_RUN_ID": "77",
        "GITHUB_JOB_ID": "4711", "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REF_NAME": "main", "GITHUB_TRIGGERING_ACTOR": "someone", "RUNNER_NAME": "runner-7",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_HEAD_REF", raising=False)
    write_latency(project, 10.0)
    project.pytest("--ttnn-perf-update=new")
    write_latency(project, 20.0)
    project.run("git", "init", "--quiet", "--initial-branch", "mine")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    project.run("git", "add", "--all")
    project.run("git", *author, "commit", "--quiet", "--message", "first")

    assert project.pytest("--ttnn-perf", "--ttnn-perf-benchmark-json=out").code == 1

    (file,) = (project.path / "out").iterdir()
    assert re.fullmatch(r"complete_run_.*test-model-py-test-model.*_4711\.json", file.name)
    (document,) = written(project)
    (measured,) = document["measurements"]
    assert (measured["name"], measured["value"]) == ("latency", 20.0)
    assert document["config_params"]["ttnn_perf"]["metrics"]["latency"]["outcome"] == "REGRESSED"
    assert re.fullmatch(r"[0-9a-f]{40}", document["git_commit_hash"])
    assert document["git_commit_ts"] is not None
    link = "https://github.com/tenstorrent/tt-metal/actions/runs/77"
    expected = {
        "git_repo_name": "tenstorrent/tt-metal", "git_branch_name": "main",
        "github_pipeline_id": 77, "github_pipeline_link": link, "github_job_id": 4711,
        "user_name": "someone", "device_hostname": "runner-7",
    }  # fmt: skip
    assert {name: document[name] for name in expected} == expected


def test_what_has_no_number_is_named_and_not_written(project: Project) -> None:
    half = """
        def test_model(ttnn_perf):
            ttnn_perf.record("good", 1.0, unit="ms")
            ttnn_perf.record("bad", float("nan"), unit="ms")

        def test_raises(ttnn_perf):
            ttnn_perf.record("half", 1.0, unit="ms")
            raise RuntimeError("on the way")
    """
    project.write(test_model=half)
    project.pytest("--ttnn-perf", "--ttnn-perf-benchmark-json=out")
    (document,) = written(project)
    assert [each["name"] for each in document["measurements"]] == ["good"]
    assert document["config_params"]["ttnn_perf"]["without_value"] == ["bad"]


def test_what_we_write_we_read(project: Project) -> None:
    project.write(test_model=MODEL)
    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-benchmark-json=out")
    (file,) = (project.path / "out").iterdir()

    gated = project.cli("gate", str(file))
    project.cli("import", str(file), "--json", "run.json")

    assert gated.code == 0, gated.text + gated.errors
    assert "1 test gated; metrics: 2 WITHIN" in gated.text
    original = entry_of(project, TEST)
    imported = json.loads((project.path / "run.json").read_text())
    ((name, entry),) = imported["tests"].items()
    assert name == TEST
    assert entry["facts"] == original["facts"]
    definition = ("unit", "better", "kind", "source", "target")
    for metric, observed in original["metrics"].items():
        there = entry["metrics"][metric]
        assert [there.get(part) for part in definition] == [observed.get(p) for p in definition]
    assert entry["metrics"]["tokens/s.decode"]["samples"] == [36.0]
