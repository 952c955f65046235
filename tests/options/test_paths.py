"""Settings that are paths: a file's start at its folder, an option's where the user stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.options import option_of
from tests.behaviour.model import configure, write_latency

if TYPE_CHECKING:
    from tests.harness.project import Project

#: What is written below, or at, each of them.
WRITTEN = {
    "baselines": "/host-*/test_model.json",
    "artifacts": "/runs/*.json",
    "json": "",
    "markdown": "",
    "gitlab": "",
    "benchmark_json": "/complete_run_*.json",
}


@pytest.fixture
def below(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose user stands in a folder below its root."""
    (project.path / "pytest.ini").write_text("[pytest]\n")
    write_latency(project, 12.5)
    (project.path / "below").mkdir()
    monkeypatch.chdir(project.path / "below")
    return project


def places(project: Project, folder: str) -> set[str]:
    """Return what was written into ``folder``, under the name of its setting."""
    root = project.path / folder
    return {name for name, files in WRITTEN.items() if [*root.glob(f"{name}{files}")]}


def test_settings_start_at_the_root_and_options_where_the_user_stands(below: Project) -> None:
    configure(below, *(f'{name} = "kept/{name}"' for name in WRITTEN))

    below.pytest("--ttnn-perf-update=new", "..")

    assert (places(below, "kept"), places(below, "below")) == (set(WRITTEN), set())

    options = [f"{option_of(name)}=mine/{name}" for name in WRITTEN]
    ran = below.pytest("--ttnn-perf-update=new", *options, "..")

    assert places(below, "below/mine") == set(WRITTEN)
    assert "ttnn-perf: gate on, key host-ARCH, baselines mine/baselines, update new" in ran.text
