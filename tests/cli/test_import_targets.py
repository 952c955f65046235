"""Targets of models: imported from other repositories, and met by tests at run time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import configure, entry_of, refusal_of
from tests.harness.benchmarks import complete_run, measurement, write_json

if TYPE_CHECKING:
    from tests.harness.project import Project

CENTRAL = """
version: 1
# `prefill_time_to_first_token` values are in milliseconds (ms).
targets:
  falcon-7b:
    aliases: ["falcon-7b", "tiiuae/Falcon-7B"]
    skus:
      wh_n150:
        entries:
          - batch_size: 32
            seq_len: 128
            status: active
            perf:
              prefill_time_to_first_token: 190
              decode_t/s/u: 17.5
              decode_t_s_u_tolerance: 0.2
              compile_prefill: 30
              mystery: 3
            accuracy: {}
          - batch_size: 32
            seq_len: null
            status: active
            perf:
              decode_t/s/u: 1.0
              prefill_t/s: 2000.0
            accuracy: {}
          - batch_size: null
            seq_len: null
            status: TODO
            perf: {}
            accuracy: {}
      wh_llmbox_perf:
        entries:
          - batch_size: 32
            seq_len: 128
            status: active
            perf:
              decode_t/s/u: 64.0
            accuracy: {}
      mars_rover:
        entries: []
"""
MODEL = """
    import pytest

    @pytest.mark.ttnn_perf(batch=32)
    def test_falcon(ttnn_perf):
        ttnn_perf.facts(model="TIIUAE/falcon-7b", input_sequence_length=128)
        ttnn_perf.attach("result.json")
"""
TEST = "test_model.py::test_falcon"


@pytest.fixture
def falcon(project: Project) -> Project:
    """A project with imported targets, and a test on an n150."""
    (project.path / "model_targets.yaml").write_text(CENTRAL)
    assert project.cli("import", "model_targets.yaml", "--json", "goals.json").code == 0
    configure(project, 'targets = "goals.json"')
    project.write(test_model=MODEL)
    write_result(project)
    return project


def write_result(project: Project, **members: object) -> None:
    result = complete_run(
        measurement("inference_decode", "tokens/s/user", 17.16),
        measurement("inference_prefill", "time_to_token", 0.195),
        **members,
    )
    write_json(project.path / "result.json", result)


def targets_of(project: Project, test: str = TEST) -> dict[str, float | None]:
    metrics = entry_of(project, test)["metrics"]
    return {name: observed.get("target") for name, observed in metrics.items()}


def test_import_says_what_was_taken_and_what_not(project: Project) -> None:
    (project.path / "model_targets.yaml").write_text(CENTRAL)

    ran = project.cli("import", "model_targets.yaml", "--json", "goals.json")

    lines = ran.text.splitlines()
    assert ran.code == 0
    assert [line for line in lines if line.startswith("not taken")] == [
        "not taken: falcon-7b, wh_n150 [batch 32, length 128]: compile_prefill: a compile time is "
        "not gated",
        "not taken: falcon-7b, wh_n150 [batch 32, length 128]: mystery: unknown metric",
        "not taken: falcon-7b, wh_n150 [batch None, length None]: its status is TODO",
        "not taken: falcon-7b, mars_rover: unknown SKU",
    ]
    assert "5 targets of 1 model taken, 4 not" in lines
    assert json.loads((project.path / "goals.json").read_text())["format"] == 1


def test_the_most_specific_target_is_met_in_the_unit_of_the_metric(falcon: Project) -> None:
    ran = falcon.pytest("--ttnn-perf-update=new")

    assert ran.code == 0, ran.text
    assert targets_of(falcon) == {
        "tokens/s/user.inference_decode": 17.5,
        "time_to_token.inference_prefill": pytest.approx(0.19),
    }
    assert "17.16 tok/s/user, target 17.50 tok/s/user: not reached" in ran.text


@pytest.mark.parametrize(
    ("device", "before", "after", "decode"),
    [
        ("N300", "", "", None),
        ("N150", 'model="TIIUAE/falcon-7b"', 'model="falcon-40b"', None),
        ("N150", "input_sequence_length=128", "input_sequence_length=512", 1.0),
        ("N150", "batch=32", "batch=32, target={'tokens/s/user.inference_decode': 20.0}", 20.0),
    ],
    ids=["another board", "another model", "another length", "a target of its own"],
)
def test_the_system_and_facts_of_the_test_decide(
    falcon: Project, device: str, before: str, after: str, decode: float | None
) -> None:
    write_result(falcon, device_info={"device_name": device})
    falcon.write(test_model=MODEL.replace(before, after))
    falcon.pytest("--ttnn-perf-update=new")
    assert targets_of(falcon)["tokens/s/user.inference_decode"] == decode


def test_a_damaged_file_is_refused_with_its_place(falcon: Project) -> None:
    (falcon.path / "goals.json").write_text('{"format": 1,\n "targets": [{"models": 7}]}')
    refusal = refusal_of(falcon.pytest("--ttnn-perf"))
    assert "goals.json:2: ['targets'][0]['models']: expected a list, found 7" in refusal


PHASES = {"_host": "Blackhole p150b", "_tolerance_pct": 5.0, "phases": {"seg_head": 262.0}}


def test_files_of_one_model_have_to_be_told_which(project: Project) -> None:
    write_json(project.path / "phases.json", PHASES)
    command = ("import", "phases.json", "--json", "goals.json")

    nameless = project.cli(*command)
    nowhere = project.cli(*command, "--model", "uniad")
    ran = project.cli(*command, "--model", "uniad", "--hardware", "blackhole-p150")

    assert "it does not say which model it is of: add --model NAME" in nameless.errors
    assert "add --hardware ARCH-BOARD" in nowhere.errors
    assert "1 target of 1 model taken, 0 not" in ran.text
