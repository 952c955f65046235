"""The configuration files: which one counts, what it may say, and the settings without options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.settings import Settings
from tests.behaviour.model import (
    configure,
    counts_of,
    entry_of,
    refusal_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

KNOWN = ", ".join(sorted(Settings.__struct_fields__))


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("pyproject.toml", "[tool.ttnn_perf]\nwarm_up = 3\n",
         f"[tool.ttnn_perf] warm_up: expected one of {KNOWN}, "
         "found the unknown setting 'warm_up'; did you mean warmup?"),
        ("ttnn_perf.toml", "warm_up = 3\n",
         f"warm_up: expected one of {KNOWN}, "
         "found the unknown setting 'warm_up'; did you mean warmup?"),
        ("ttnn_perf.toml", "pcc = nan\n", "pcc: expected a finite number, found nan"),
        ("ttnn_perf.toml", "markers = ['perf', 1]\n", "markers.1: expected a string, found 1"),
        ("ttnn_perf.toml", 'key = ["board", "mesh", "hots"]\n',
         "key.2: expected one of arch, board, mesh, host, found 'hots'"),
        ("ttnn_perf.toml", 'key = ["host"]\n',
         "key: expected at least board and mesh, without which boards would be"),
        ("ttnn_perf.toml", 'key = "host"\n', "key: expected a list"),
        ("pyproject.toml", "tool.ttnn_perf = true\n",
         "[tool.ttnn_perf] expected a table, found True"),
        ("pyproject.toml", "[tool.ttnn-perf]\n",
         "expected the table [tool.ttnn_perf], found [tool.ttnn-perf]"),
        ("ttnn_perf.toml", "[tool.ttnn_perf\n", ""),
    ],
)  # fmt: skip
def test_settings_that_are_none_are_refused_with_their_place(
    project: Project, file: str, text: str, complaint: str
) -> None:
    write_latency(project, 12.5)
    (project.path / file).write_text(text)
    refused = f"{project.path}/{file}: {complaint}"
    if not complaint:
        refused = f"{project.path}/{file}:"  # and what the parser says

    asked = project.cli("baseline", "list")

    assert asked.code == 3
    assert asked.errors.startswith(f"ttnn-perf: {refused}")
    assert refusal_of(project.pytest()).startswith(refused)


@pytest.mark.parametrize("arguments", [[], ["--ttnn-perf"]], ids=["idle", "gated"])
def test_a_run_is_refused_with_them_idle_or_gated(project: Project, arguments: list[str]) -> None:
    write_latency(project, 12.5)
    configure(project, "enabled = true", file="pyproject.toml")
    configure(project, 'label = "own"', file="ttnn_perf.toml")
    refused = (
        f"{project.path}/pyproject.toml: expected the settings in one file, found [tool.ttnn_perf] "
        "beside ttnn_perf.toml: remove one of the two"
    )

    assert refusal_of(project.pytest(*arguments)) == refused
    assert project.cli("baseline", "list").errors == f"ttnn-perf: {refused}"


def test_first_calls_are_gated_on_request(project: Project) -> None:
    project.write(test_model="def test_model(ttnn_perf): ttnn_perf.measure(int)")
    gated = ("first_call_time", "second_call_time")
    configure(project, *(f"gate_{name} = true" for name in gated))

    project.pytest("--ttnn-perf")

    assert set(entry_of(project)["verdicts"]) == {"wall_time", *gated}


def test_a_project_that_only_depends_on_us_costs_nothing(project: Project) -> None:
    text = (
        '[project]\nname = "ttnn-models"\nversion = "1"\n'
        'dependencies = ["ttnn", "pytest-ttnn-perf>=0.1"]\n'
        '[dependency-groups]\ntest = [\n  "pytest-ttnn-perf",\n]\n'
    )
    project.write(
        test_model="""
            import sys

            def test_model():
                assert "pytest_ttnn_perf.core.settings" not in sys.modules
        """
    )
    (project.path / "pyproject.toml").write_text(text)

    assert counts_of(project.pytest_process("-p", "no:cacheprovider")) == "1 passed"
