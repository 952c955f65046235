"""``--ttnn-perf-update`` and ``update``: how it is asked for, and what no form of it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    configure,
    counts_of,
    metric,
    outcomes,
    refusal_of,
    stored_metric,
    write_latency,
    write_model,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

WHAT = ("new", "improved", "all")


def updating(what: str) -> list[str]:
    """Return the arguments of an update, with the reason that one of them needs."""
    return [f"--ttnn-perf-update={what}", "--ttnn-perf-reason=because"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--ttnn-perf-update"], "improved"),
        (["test_model.py", "--ttnn-perf-update"], "improved"),
        (["--ttnn-perf-update", "-q", "test_model.py"], "improved"),
        (["--ttnn-perf-update=new", "test_model.py"], "new"),
        (["--ttnn-perf-update", "new", "test_model.py"], "new"),
        (["--ttnn-perf-update=improved"], "improved"),
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


@pytest.mark.parametrize("reason", [[], ["--ttnn-perf-reason="], ["--ttnn-perf-reason=  "]])
def test_all_without_a_reason_is_refused(project: Project, reason: list[str]) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf-update=all", *reason)

    assert refusal_of(ran) == (
        '--ttnn-perf-update=all needs --ttnn-perf-reason "why the change is right"'
    )


def test_option_wins_over_the_setting(project: Project) -> None:
    write_latency(project, 12.5)
    configure(project, 'update = "new"')

    assert ", update improved, " in project.pytest("--ttnn-perf-update").text


@pytest.mark.parametrize("what", ["all"])
@pytest.mark.parametrize(
    ("latency", "outcome"),
    [
        (metric(float("nan")), "NO_DATA"),
        (metric(0), "NO_DATA"),
        (metric(), "NO_DATA"),
        (metric(3, 4, kind="count", better="equal", unit=""), "TOO_NOISY"),
    ],
    ids=["not finite", "not positive", "no samples", "samples differ"],
)
def test_unusable_numbers_are_not_stored_for_a_new_test(
    project: Project, what: str, latency: dict[str, object], outcome: str
) -> None:
    write_model(project, latency=latency, other=metric(5))

    ran = project.pytest(*updating(what))

    assert counts_of(ran) == "1 failed"
    assert outcomes(project) == {"latency": outcome, "other": "NO_BASELINE"}
    assert not (project.path / "baselines").exists()


@pytest.mark.parametrize("what", WHAT)
def test_test_that_raises_writes_nothing(project: Project, what: str) -> None:
    project.write(
        test_model="""
            def test_model(ttnn_perf):
                ttnn_perf.record("latency", 12.5, unit="ms")
                raise RuntimeError("device lost")
        """
    )

    ran = project.pytest(*updating(what))

    assert counts_of(ran) == "1 failed"
    assert not (project.path / "baselines").exists()
