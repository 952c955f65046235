"""``--ttnn-perf-benchmark-json`` and ``benchmark_json``: results for dashboards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.behaviour.model import entry_of, write_latency
from tests.existing.idioms import IDIOMS, write_project

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
    assert (known.pop("model"), known.pop("model_type")) == ("llama3.1-8b", "llm")
    known.pop("config")
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
    assert re.fullmatch(r"complete_run_.*test-model-py-test-model-.*Z\.json", file.name)
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


#: What the collector of tt-github-actions reads of a file, for tt-xla and the tt-forge projects.
COLLECTED = {
    "type": "object",
    "required": ["run_type", "model", "measurements"],
    "properties": {
        "run_type": {"type": "string"},
        "model": {"type": "string"},
        **{name: {"type": ["string", "null"]} for name in (
            "project", "model_type", "precision", "dataset_name", "profile_name",
            "image_dimension", "device_ip")},
        "config": {"type": ["object", "null"]},
        "device_info": {"type": ["object", "null"]},
        "perf_analysis": {"type": ["boolean", "null"]},
        "training": {"type": ["boolean", "null"]},
        "measurements": {"type": "array", "items": {
            "type": "object",
            "required": ["iteration", "step_name", "measurement_name", "value"],
            "properties": {
                "iteration": {"type": "integer"},
                "step_name": {"type": "string"},
                "step_warm_up_num_iterations": {"type": ["integer", "null"]},
                "measurement_name": {"type": "string"},
                "value": {"type": "number"},
                **{name: {"type": ["number", "null"]} for name in (
                    "target", "device_power", "device_temperature")},
            },
        }},
    },
}  # fmt: skip


@pytest.mark.parametrize(("repository", "has_job"), [("tt-xla", True), ("tt-metal", False)])
def test_what_collectors_read(
    project: Project, monkeypatch: pytest.MonkeyPatch, repository: str, *, has_job: bool
) -> None:
    """The collector stops at a file with a job's id of a repository that it has no mapper for."""
    monkeypatch.setenv("GITHUB_REPOSITORY", f"tenstorrent/{repository}")
    monkeypatch.setenv("GITHUB_JOB_ID", "4711")
    project.write(test_model=MODEL)

    project.pytest("--ttnn-perf-update=new", "--ttnn-perf-benchmark-json=out")

    (file,) = (project.path / "out").iterdir()
    ending = file.name.split(".")[-2].split("_")[-1]
    assert ending.isdecimal() is has_job
    (document,) = written(project)
    jsonschema.validate(document, COLLECTED)
    assert document["project"] == repository
    names = {each["measurement_name"] for each in document["measurements"]}
    assert names == {"tokens/s", "pcc"}


def test_what_a_helper_was_told_stays_and_a_test_without_a_number_has_no_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "0123456789abcdef")
    told = IDIOMS[4].text.replace('run_type="demo"', 'run_type="demo", device_name="T3K"')
    write_project(project, told, test_plain="def test_plain():\n    pass\n")

    project.pytest("--ttnn-perf-all", "--ttnn-perf-benchmark-json=out")

    (document,) = written(project)
    assert (document["run_type"], document["model"]) == ("demo", "Llama-3.1-8B")
    assert document["device_info"]["device_name"] == "T3K"
    assert document["git_commit_hash"] == "0123456789abcdef"


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
