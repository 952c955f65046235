"""The configuration files: which one counts, what it may say, and the settings without options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.settings import Settings
from tests.behaviour.model import (
    CONFIG_FILES,
    configure,
    counts_of,
    entry_of,
    refusal_of,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

KNOWN = ", ".join(sorted(Settings.__struct_fields__))
#: How a message names the place of a setting in each file.
TABLES = {"pyproject.toml": "[tool.ttnn_perf] ", "ttnn_perf.toml": ""}


@pytest.mark.parametrize(
    ("file", "arguments"), [*zip(CONFIG_FILES, ([], ["--ttnn-perf"]), strict=True)]
)
def test_unknown_setting_is_refused_with_the_known_ones(
    project: Project, file: str, arguments: list[str]
) -> None:
    write_latency(project, 12.5)
    configure(project, "warm_up = 3", file=file)

    ran = project.pytest(*arguments)

    assert refusal_of(ran) == (
        f"{project.path}/{file}: {TABLES[file]}warm_up: expected one of {KNOWN}, "
        "found the unknown setting 'warm_up'; did you mean warmup?"
    )


@pytest.mark.parametrize("key", ["ttnn_perf_warmup", "ttnn-perf-warmup"])
def test_setting_among_the_options_of_pytest_is_refused_with_its_place(
    project: Project, key: str
) -> None:
    write_latency(project, 12.5)
    file = project.path / "pyproject.toml"
    file.write_text(f"[tool.pytest.ini_options]\n{key} = 3\n")

    assert refusal_of(project.pytest()) == (
        f"{file}: [tool.pytest.ini_options] {key}: expected warmup in [tool.ttnn_perf], "
        "found it among the options of pytest"
    )


def test_option_of_a_conftest_is_not_ours_to_refuse(project: Project) -> None:
    project.write(
        conftest="""
            def pytest_addoption(parser):
                parser.addoption("--ttnn-perf-nightly", action="store_true")
        """
    )
    write_latency(project, 12.5)

    assert project.pytest("--ttnn-perf-nightly").code == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("pcc = nan", "pcc: expected a finite number, found nan"),
        ("markers = ['perf', 1]", "markers.1: expected a string, found 1"),
    ],
)
def test_wrong_value_is_refused(project: Project, line: str, problem: str) -> None:
    configure(project, line)

    ran = project.pytest("--ttnn-perf")

    assert refusal_of(ran) == f"{project.path}/pyproject.toml: [tool.ttnn_perf] {problem}"


@pytest.mark.parametrize("file", CONFIG_FILES)
def test_file_that_is_no_toml_is_refused(project: Project, file: str) -> None:
    (project.path / file).write_text("[tool.ttnn_perf\n")

    message = refusal_of(project.pytest("--ttnn-perf"))

    # What follows is the parser's own text. pytest reads pyproject.toml before us.
    assert str(project.path / file) in message


def test_table_that_is_none_is_refused(project: Project) -> None:
    (project.path / "pyproject.toml").write_text("[tool]\nttnn_perf = true\n")

    ran = project.pytest("--ttnn-perf")

    assert refusal_of(ran) == (
        f"{project.path}/pyproject.toml: [tool.ttnn_perf] expected a table, found True"
    )


def test_settings_in_both_files_are_refused(project: Project) -> None:
    write_latency(project, 12.5)
    configure(project, "enabled = true", file="pyproject.toml")
    configure(project, 'label = "own"', file="ttnn_perf.toml")
    refused = (
        f"{project.path}/pyproject.toml: expected the settings in one file, found [tool.ttnn_perf] "
        "beside ttnn_perf.toml: remove one of the two"
    )

    assert refusal_of(project.pytest()) == refused
    asked = project.cli("baseline", "list")
    assert (asked.code, asked.errors) == (3, f"ttnn-perf: {refused}")


def test_shared_file_without_our_table_may_stand_beside_the_own_one(project: Project) -> None:
    write_latency(project, 12.5)
    (project.path / "pyproject.toml").write_text("# ttnn_perf\n[tool.other]\nttnn_perf = 1\n")
    configure(project, 'label = "own"', file="ttnn_perf.toml")

    project.pytest("--ttnn-perf")

    assert project.records()[0]["label"] == "own"


@pytest.mark.parametrize("gated", ["first_call_time", "second_call_time"])
def test_first_calls_are_gated_on_request(project: Project, gated: str) -> None:
    project.write(test_model="def test_model(ttnn_perf): ttnn_perf.measure(int)")
    configure(project, f"gate_{gated} = true")

    project.pytest("--ttnn-perf")

    assert set(entry_of(project)["verdicts"]) == {"wall_time", gated}


@pytest.mark.parametrize(
    "table",
    [
        "tool.ttnn-perf",
        "tool.pytest-ttnn-perf",
        "Tool.ttnn_perf",
        "ttnn_perf",
    ],
)
def test_a_table_of_another_name_is_refused(project: Project, table: str) -> None:
    write_latency(project, 12.5)
    (project.path / "pyproject.toml").write_text(f"[{table}]\nenabled = true\n")
    refused = f"{project.path}/pyproject.toml: expected the table [tool.ttnn_perf], found [{table}]"

    assert refusal_of(project.pytest()) == refused
    asked = project.cli("baseline", "list")
    assert (asked.code, asked.errors) == (3, f"ttnn-perf: {refused}")


@pytest.mark.parametrize(
    ("name", "beside"), [("TTNN_PERF.toml", ""), ("pytest_ttnn_perf.toml", "ttnn_perf.toml")]
)
def test_a_file_of_another_name_is_refused(project: Project, name: str, beside: str) -> None:
    write_latency(project, 12.5)
    (project.path / name).write_text("enabled = true\n")
    if beside:
        (project.path / beside).touch()
    refused = f"{project.path}/{name}: expected the name ttnn_perf.toml, found {name}"

    assert refusal_of(project.pytest()) == refused
    asked = project.cli("baseline", "list")
    assert (asked.code, asked.errors) == (3, f"ttnn-perf: {refused}")


def test_own_file_that_cannot_be_read_is_refused(project: Project) -> None:
    write_latency(project, 12.5)
    (project.path / "ttnn_perf.toml").symlink_to("nosuch.toml")

    refused = refusal_of(project.pytest())

    assert refused == (
        f"{project.path}/ttnn_perf.toml: expected a file, found a link that leads nowhere"
    )


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
