"""``record`` and ``region``: any metric, in any number of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of, failure_of, outcomes

if TYPE_CHECKING:
    from tests.harness.project import Project


def write_lines(project: Project, *lines: str) -> None:
    """Write a test from the lines of its body."""
    body = "".join(f"    {line}\n" for line in lines)
    project.write(test_model=f"import numpy as np\n\ndef test_model(ttnn_perf):\n{body}")


@pytest.mark.parametrize(
    ("value", "samples"),
    [
        ("3", [3]),
        ("2.5", [2.5]),
        ("[1, 2.5]", [1, 2.5]),
        ("(n / 2 for n in (1, 2))", [0.5, 1.0]),
        ("np.float32(1.5)", [1.5]),
        ("np.array([1.5, 2.5])", [1.5, 2.5]),
        ("[1.5, float('inf')]", [1.5, None]),
        ("[]", []),
    ],
)
def test_numbers_are_kept_as_they_come(
    project: Project, value: str, samples: list[float | None]
) -> None:
    write_lines(project, f"ttnn_perf.record('latency', {value}, unit='ms')")

    project.pytest("--ttnn-perf")

    assert entry_of(project)["metrics"]["latency"]["samples"] == samples


def test_same_name_again_adds_samples(project: Project) -> None:
    write_lines(project, *["ttnn_perf.record('latency', [1, 2], unit='ms')"] * 2)

    project.pytest("--ttnn-perf")

    assert entry_of(project)["metrics"]["latency"]["samples"] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "unit", "better", "kind"),
    [
        ("", "", "lower", "time"),
        ("unit='us'", "us", "lower", "time"),
        ("unit='tok/s'", "tok/s", "higher", "throughput"),
        ("unit='MiB'", "MiB", "lower", "bytes"),
        ("kind='count'", "", "lower", "count"),
        ("kind='accuracy'", "", "higher", "accuracy"),
        ("unit='tok/s', better='equal', kind='count'", "tok/s", "equal", "count"),
    ],
)
def test_what_is_not_said_follows_the_unit_and_the_kind(
    project: Project, arguments: str, unit: str, better: str, kind: str
) -> None:
    write_lines(project, f"ttnn_perf.record('metric', 1, {arguments})")

    project.pytest("--ttnn-perf")

    metric = entry_of(project)["metrics"]["metric"]
    assert (metric["unit"], metric["better"], metric["kind"]) == (unit, better, kind)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("record('latency', 'fast')", "latency: sample 0 is not a number: 'fast'"),
        ("record('latency', [1, None])", "latency: sample 1 is not a number: None"),
        ("record('latency', [1, True])", "latency: sample 1 is not a number: True"),
        ("record('', 1)", "a metric's name is a non-empty string, found ''"),
        (
            "record('latency', 1, better='faster')",
            "latency: better is one of lower, higher, equal, found 'faster'",
        ),
        (
            "record('latency', 1, kind='speed')",
            "latency: kind is one of time, throughput, count, bytes, accuracy, found 'speed'",
        ),
        ("region(3).__enter__()", "a metric's name is a non-empty string, found 3"),
    ],
)
def test_mistaken_call_is_refused(project: Project, call: str, problem: str) -> None:
    write_lines(project, f"ttnn_perf.{call}")

    project.pytest("--ttnn-perf")

    assert entry_of(project)["raised"] == f"UsageError: {problem}"


@pytest.mark.parametrize(
    ("again", "problem"),
    [
        ("unit='us'", "latency was recorded with unit 'ms' before, now with 'us'"),
        (
            "unit='ms', better='higher'",
            "latency was recorded with better 'lower' before, now with 'higher'",
        ),
        (
            "unit='ms', kind='count'",
            "latency was recorded with kind 'time' before, now with 'count'",
        ),
    ],
)
def test_one_name_is_one_metric(project: Project, again: str, problem: str) -> None:
    write_lines(
        project,
        "ttnn_perf.record('latency', 1, unit='ms')",
        f"ttnn_perf.record('latency', 1, {again})",
    )

    project.pytest("--ttnn-perf")

    assert entry_of(project)["raised"] == f"UsageError: {problem}"


def test_region_adds_one_sample_each_time(project: Project) -> None:
    write_lines(
        project,
        "for _ in range(2):",
        "    with ttnn_perf.region('block'): pass",
        "with ttnn_perf.region('other'): pass",
    )

    project.pytest("--ttnn-perf")

    metrics = entry_of(project)["metrics"]
    assert [(name, len(each["samples"])) for name, each in metrics.items()] == [
        ("block", 2),
        ("other", 1),
    ]
    assert outcomes(project) == {"block": "NO_BASELINE", "other": "NO_BASELINE"}


def test_region_that_raises_has_no_time(project: Project) -> None:
    write_lines(
        project,
        "with ttnn_perf.region('block'): pass",
        "with ttnn_perf.region('block'): raise RuntimeError('device lost')",
    )

    project.pytest("--ttnn-perf")

    entry = entry_of(project)
    assert entry["raised"] == "RuntimeError: device lost"
    assert len(entry["metrics"]["block"]["samples"]) == 1


def test_test_that_records_nothing_fails(project: Project) -> None:
    write_lines(project, "pass")

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran) == (
        "NO_DATA: nothing was judged: the test recorded no metric\n"
        "  call ttnn_perf.measure(...) or ttnn_perf.record(...) in the test"
    )


def test_test_that_only_states_facts_fails_too(project: Project) -> None:
    write_lines(project, "ttnn_perf.facts(use_trace=True)")

    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")) == "1 failed"
