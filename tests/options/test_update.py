"""``--ttnn-perf-update``: how it is asked for, with its reason, and what no form of it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    counts_of,
    refusal_of,
    stored_metric,
    write_latency,
)

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--ttnn-perf-update"], "improved"),
        (["--ttnn-perf-update", "-q", "test_model.py"], "improved"),
        (["--ttnn-perf-update", "new", "test_model.py"], "new"),
        (["--ttnn-perf-update=all", "--ttnn-perf-reason=because"], "all"),
    ],
    ids=" ".join,
)
def test_ways_to_ask(project: Project, arguments: list[str], what: str) -> None:
    write_latency(project, 12.5)

    ran = project.pytest(*arguments, "-v")

    assert counts_of(ran) == "1 passed"
    assert f", update {what}, " in ran.text
    assert stored_metric(project)["sessions"] == [[12.5, 0, 1]]


def test_bare_option_before_a_path_is_refused_with_the_command_that_was_meant(
    project: Project,
) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf-update", "test_model.py")

    assert refusal_of(ran) == (
        "argument --ttnn-perf-update: expected one of new, improved, all, found 'test_model.py'; "
        "did you mean --ttnn-perf-update=improved test_model.py"
    )
    assert project.files() == {"test_model.py", "numbers.json"}


@pytest.mark.parametrize("reason", [[], ["--ttnn-perf-reason=  "]])
def test_all_without_a_reason_is_refused(project: Project, reason: list[str]) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf-update=all", *reason)

    assert refusal_of(ran) == (
        '--ttnn-perf-update=all needs --ttnn-perf-reason "why the change is right"'
    )


@pytest.mark.parametrize("option", [[], ["--ttnn-perf"]], ids=["idle", "gated"])
def test_reason_without_an_update_is_refused(project: Project, option: list[str]) -> None:
    write_latency(project, 12.5)

    ran = project.pytest(*option, "--ttnn-perf-reason", "more layers")

    assert refusal_of(ran) == (
        "--ttnn-perf-reason explains an update, and nothing is written without one: "
        "add --ttnn-perf-update, or leave it out"
    )
