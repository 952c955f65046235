"""Targets that a repository keeps in one place are met by tests as they are."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import entry_of
from tests.existing.idioms import IDIOMS, write_project

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "test_model.py::test_model"
ENTRY = """\
targets:
  llama:
    aliases: ["Llama-3.1-8B"]
    skus:
      wh_n150:
        entries:
          - {{batch_size: {batch}, seq_len: 128, status: active, perf: {perf}}}
"""
PERF = "{prefill_time_to_first_token: 19, decode_t/s/u: 60}"
ON_N150 = """
    from pytest_ttnn_perf.hooks import Hardware

    def pytest_ttnn_perf_hardware(item, hardware):
        return Hardware("wormhole_b0", "n150", "1x1")
"""


def run(project: Project, source: str, batch: int = 32) -> dict[str, float]:
    """Run a test of an n150 with imported targets; return those that it met."""
    write_project(project, source)
    (project.path / "conftest.py").write_text(dedent(ON_N150))
    (project.path / "all.yaml").write_text(ENTRY.format(batch=batch, perf=PERF))
    assert project.cli("import", "all.yaml", "--json", "goals.json").code == 0
    config = project.path / "ttnn_perf.toml"
    config.write_text(config.read_text() + 'targets = "goals.json"\n')
    project.pytest("--ttnn-perf-update=new")
    metrics = entry_of(project, TEST)["metrics"]
    return {name: m["target"] for name, m in metrics.items() if m.get("target") is not None}


def test_what_a_helper_says_of_the_run_finds_its_targets(project: Project) -> None:
    untold = IDIOMS[4].text.replace(", target=60", "")

    met = run(project, untold)

    assert met == {
        "time_to_token.inference_prefill": pytest.approx(0.019),
        "tokens/s/user.inference_decode": 60,
    }
