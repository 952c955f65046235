"""``--ttnn-perf-missing`` and ``missing``: tests that there is nothing to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import (
    CONFIG_FILES,
    MODEL,
    configure,
    counts_of,
    failure_of,
    metric,
    outcomes,
    refusal_of,
    write_latency,
    write_model,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

SENTENCE = (
    "NO_BASELINE test_model.py::test_model: latency 12.50 ms has no baseline: the test is new"
)


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        ([], "1 failed"),
        (["--ttnn-perf-missing=fail"], "1 failed"),
        (["--ttnn-perf-missing=warn"], "1 passed"),
        (["--ttnn-perf-missing", "ignore"], "1 passed"),
    ],
    ids=["default", "fail", "warn", "ignore"],
)
def test_test_without_a_baseline(project: Project, arguments: list[str], counts: str) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", *arguments)

    assert counts_of(ran) == counts
    assert outcomes(project) == {"latency": "NO_BASELINE"}
    assert "metrics: 1 NO_BASELINE" in ran.text


@pytest.mark.parametrize(("missing", "said"), [("fail", True), ("warn", True), ("ignore", False)])
def test_only_ignore_is_silent(project: Project, missing: str, said: bool) -> None:
    write_latency(project, 12.5)

    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-missing={missing}")

    assert (SENTENCE in ran.text.splitlines()) is said


@pytest.mark.parametrize(("missing", "counts"), [("fail", "1 failed"), ("warn", "1 passed")])
def test_test_that_cannot_be_compared(project: Project, missing: str, counts: str) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    other = project.baseline().parent
    other.rename(other.with_name("wormhole_b0-n150-1x1"))
    file = project.baseline(key="wormhole_b0-n150-1x1")
    hardware = '"hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}'
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], f"  {hardware},", *lines[3:]]))

    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-missing={missing}")

    assert counts_of(ran) == counts
    assert (
        "NOT_COMPARABLE test_model.py::test_model: latency 12.50 ms has no baseline on this "
        "hardware; there are ones on: wormhole_b0-n150-1x1"
    ) in ran.text.splitlines()


@pytest.mark.parametrize(
    ("latency", "line"),
    [
        (
            metric(25.5),
            "REGRESSED: latency 25.50 ms, baseline 12.50 ms: 104.0 % slower, limit 5.1 % "
            "(1 sample against 1 session; provisional baseline)",
        ),
        (metric(12.5, float("nan")), "NO_DATA: latency is not a finite number: sample 2 of 2"),
        (
            metric(12500, unit="us"),
            "NOT_COMPARABLE: latency 12.50 ms is defined differently: unit is 'us', in the "
            "baseline 'ms'",
        ),
    ],
    ids=["regressed", "no data", "another unit"],
)
def test_what_is_wrong_fails_even_when_missing_is_ignored(
    project: Project, latency: dict[str, object], line: str
) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=latency)

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran).splitlines()[0] == line


@pytest.mark.parametrize("file", CONFIG_FILES)
def test_missing_has_its_twin(project: Project, file: str) -> None:
    write_latency(project, 12.5)
    configure(project, 'missing = "warn"', file=file)

    assert counts_of(project.pytest("--ttnn-perf")) == "1 passed"
    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-missing=fail")) == "1 failed"


def test_other_words_are_refused(project: Project) -> None:
    message = refusal_of(project.pytest("--ttnn-perf", "--ttnn-perf-missing=never"))

    # Python 3.12 took the quotes off the choices.
    assert message.replace("'", "") == (
        "argument --ttnn-perf-missing: invalid choice: never (choose from fail, warn, ignore)"
    )


def test_ignore_does_not_silence_a_metric_that_is_defined_differently(project: Project) -> None:
    write_latency(project, 12.5)
    project.pytest("--ttnn-perf-update=new")
    write_model(project, latency=metric(12.5, unit="us"))

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore", "--tb=no")

    assert ran.code == 1
    sentence = "latency 12.50 us is defined differently: unit is 'us', in the baseline 'ms'"
    assert f"NOT_COMPARABLE {MODEL}: {sentence}" in ran.text.splitlines()
