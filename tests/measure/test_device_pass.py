"""What devices told in a pass of their own: taken in test by test, and put to the wall times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import End, EndKind, MetricObservation, Observation
from pytest_ttnn_perf.core.ops import OpGroups
from pytest_ttnn_perf.gate.judging import with_device
from pytest_ttnn_perf.plugin import workers as workers_module
from pytest_ttnn_perf.plugin.wire import OBSERVATION, Message

Profile = Callable[..., Mapping[str, Observation]]
TIME = Metric("device_kernel_time", "ns", Better.LOWER, Kind.TIME, Source.DEVICE)
WALL = MetricObservation(Metric("latency", "ns"), (1.0, 2.0))
DEVICE = MetricObservation(TIME, (500.0,))
OPS, OTHER_OPS = OpGroups("KERNEL", ()), OpGroups("FW", ())


def seen(test: str = "a", **changes: Any) -> Observation:
    return replace(Observation(test, {"latency": WALL}), **changes)


def told(test: str = "a", **changes: Any) -> Observation:
    return replace(Observation(test, {TIME.name: DEVICE}), **changes)


def given_up(test: str, why: str) -> Observation:
    nothing = MetricObservation(TIME, (), note=f"device pass: {why}")
    return Observation(test, {TIME.name: nothing})


@pytest.mark.parametrize(
    ("of_wall", "of_device", "merged"),
    [
        ({"metrics": {TIME.name: replace(DEVICE, samples=(900.0,)), "latency": WALL}}, {},
         {"metrics": {TIME.name: DEVICE, "latency": WALL}}),
        ({"ops": OTHER_OPS}, {"ops": OPS}, {"ops": OPS}),
        ({"ops": OTHER_OPS}, {}, {"ops": OTHER_OPS}),
        ({}, {"ops": OPS}, {"ops": OPS}),
        # What was true meanwhile is that of the wall pass where both tell.
        ({"environment": {"clock": 1000, "cache": 3}}, {"environment": {"clock": 500, "log": "x"}},
         {"environment": {"clock": 1000, "cache": 3, "log": "x"}}),
        ({"problems": ("wall",)}, {"problems": ("device",)}, {"problems": ("wall", "device")}),
    ],
    ids=["metrics", "ops of both", "ops of wall", "ops of device", "environment", "problems"],
)  # fmt: skip
def test_what_both_passes_told(
    of_wall: dict[str, Any], of_device: dict[str, Any], merged: dict[str, Any]
) -> None:
    found = with_device(seen(**of_wall), told(**of_device))
    assert {name: getattr(found, name) for name in merged} == merged


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Return what a device pass makes of the events of its workers."""

    class Told(list[Any]):
        stopped = None

        def __enter__(self) -> list[Any]:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def run(tests: list[str], *events: Any) -> Mapping[str, Observation]:
        collected = Message("collected", {"tests": tests})
        monkeypatch.setattr(workers_module, "Pass", lambda *_, **__: Told([collected, *events]))
        workers: Any = SimpleNamespace(print_line=print)
        return workers_module.profile_tests(workers, None).observations

    return run


def reported(test: str, observed: object = None, *, outcome: str = "passed") -> Message:
    report = {"nodeid": test, "when": "call", "outcome": outcome, OBSERVATION: observed}
    return Message("reported", {"report": report})


def loss(*tests: str) -> Message:
    text = "was killed by SIGKILL; log: 1-device/worker.log"
    return Message("lost", {"tests": list(tests), "text": text, "tail": ""})


@pytest.mark.parametrize(
    ("observed", "why"),
    [
        (
            encode(told(ended=End(EndKind.RAISED, "ValueError: no"))),
            "the test raised ValueError: no",
        ),
        ([], "the document: expected an object, found a list of 0"),
    ],
    ids=["raised", "damaged"],
)
def test_a_test_that_told_nothing_says_why(profile: Profile, observed: object, why: str) -> None:
    assert profile(["a"], reported("a", observed)) == {"a": given_up("a", why)}


def test_a_test_that_was_skipped_is_not_missed_and_one_that_runs_again_is_waited_for(
    profile: Profile,
) -> None:
    found = profile(
        ["skipped", "rerun", "apart"],
        reported("skipped", outcome="skipped"),
        reported("rerun", encode(told("rerun")), outcome="rerun"),
        Message("finished", {"test": "apart", "apart": True}),
    )
    assert found == {"rerun": given_up("rerun", "the test did not run")}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Message("stopped", {"text": "no such option"}), "no such option"),
        (loss(), "its worker was killed by SIGKILL; log: 1-device/worker.log"),
    ],
    ids=["refused", "died"],
)
def test_tests_that_no_worker_came_to_say_why(profile: Profile, event: Any, why: str) -> None:
    assert profile(["a", "b"], event) == {"a": given_up("a", why), "b": given_up("b", why)}
