"""``record`` and ``region``: any metric, in any number of samples; one run for all calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, failure_of, record_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Each call, and the samples that are kept of it.
SAMPLES: dict[str, list[float | None]] = {
    "record('m', 3)": [3],
    "record('m', [1, 2.5])": [1, 2.5],
    "record('m', (n / 2 for n in (1, 2)))": [0.5, 1.0],
    "record('m', np.float32(1.5))": [1.5],
    "record('m', np.array([1.5, 2.5]))": [1.5, 2.5],
    "record('m', [1.5, float('inf')])": [1.5, None],
    "record('m', [])": [],
    "record('m', [1, 2]); ttnn_perf.record('m', 3)": [1, 2, 3],
}
#: What is not said follows the unit and the kind.
DEFINED = {
    "record('m', 1)": ("", "lower", "time"),
    "record('m', 1, unit='us')": ("us", "lower", "time"),
    "record('m', 1, unit='tok/s')": ("tok/s", "higher", "throughput"),
    "record('m', 1, unit='MiB')": ("MiB", "lower", "bytes"),
    "record('m', 1, kind='count')": ("", "lower", "count"),
    "record('m', 1, kind='accuracy')": ("", "higher", "accuracy"),
    "record('m', 1, unit='tok/s', better='equal', kind='count')": ("tok/s", "equal", "count"),
}
AGAIN = "record('m', 1, unit='ms'); ttnn_perf.record('m', 1, "
REFUSED = {
    "record('m', 'fast')": "m: sample 0 is not a number: 'fast'",
    "record('m', [1, None])": "m: sample 1 is not a number: None",
    "record('m', [1, True])": "m: sample 1 is not a number: True",
    "record('', 1)": "a metric's name is a non-empty string, found ''",
    "record('m', 1, better='faster')":
        "m: better is one of lower, higher, equal, found 'faster'",
    "record('m', 1, kind='speed')":
        "m: kind is one of time, throughput, count, bytes, accuracy, found 'speed'",
    "record('m', 1, unit='TFLOPS')":
        "m: the unit 'TFLOPS' does not say which way is better; say better= or kind=",
    "measure(12)": "measure takes a callable and its arguments, not a result: found 12",
    "region(3).__enter__()": "a metric's name is a non-empty string, found 3",
    f"{AGAIN}unit='us')": "m was recorded with unit 'ms' before, now with 'us'",
    f"{AGAIN}unit='ms', better='higher')":
        "m was recorded with better 'lower' before, now with 'higher'",
    f"{AGAIN}unit='ms', kind='count')": "m was recorded with kind 'time' before, now with 'count'",
}  # fmt: skip


def recorded(project: Project, *calls: str) -> list[dict[str, Any]]:
    """Return what one run records of a test for each call."""
    tests = (
        f"def test_{number:02}(ttnn_perf):\n    ttnn_perf.{call}\n"
        for number, call in enumerate(calls)
    )
    project.write(test_model="import numpy as np\n\n" + "\n".join(tests))
    project.pytest("--ttnn-perf")
    return list(record_of(project)["tests"].values())


def test_what_is_kept_of_each_call(project: Project) -> None:
    samples, defined, refused = len(SAMPLES), len(DEFINED), len(REFUSED)
    found = recorded(project, *SAMPLES, *DEFINED, *REFUSED)
    assert len(found) == samples + defined + refused
    kept = [each["metrics"]["m"] for each in found[: samples + defined]]
    assert [each["samples"] for each in kept[:samples]] == list(SAMPLES.values())
    assert [(m["unit"], m["better"], m["kind"]) for m in kept[samples:]] == list(DEFINED.values())
    assert [each["raised"] for each in found[-refused:]] == [
        f"UsageError: {problem}" for problem in REFUSED.values()
    ]


def test_region_adds_one_sample_each_time_and_none_where_it_raises(project: Project) -> None:
    (found,) = recorded(
        project,
        "facts()\n    for _ in range(2):\n        with ttnn_perf.region('block'): pass\n"
        "    with ttnn_perf.region('other'): pass\n"
        "    with ttnn_perf.region('block'): raise RuntimeError('device lost')",
    )
    assert found["raised"] == "RuntimeError: device lost"
    assert {name: len(each["samples"]) for name, each in found["metrics"].items()} == {
        "block": 2,
        "other": 1,
    }


@pytest.mark.parametrize("body", ["pass", "ttnn_perf.facts(use_trace=True)"])
def test_test_that_records_nothing_fails(project: Project, body: str) -> None:
    project.write(test_model=f"def test_model(ttnn_perf):\n    {body}\n")

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed"
    assert failure_of(ran) == (
        "NO_DATA: nothing was judged: the test recorded no metric\n"
        "  call ttnn_perf.measure(...) or ttnn_perf.record(...) in the test"
    )
