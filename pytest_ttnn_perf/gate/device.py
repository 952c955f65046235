"""What the device pass measured, and how it is joined with the wall pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import (
    COMPILE,
    FIRST_CALL,
    KERNEL_TIME,
    THROUGHPUT_TIME,
    Kind,
    Source,
    recorded_metric,
    told_twice,
    unrecorded,
)
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.gate.checklist import join_answers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class DeviceResults(Struct, frozen=True):
    """What the device pass measured, by test; nothing where there was no such pass.

    ``unavailable`` says why nothing is known of any test. After ``stopped``, no worker may follow:
    a device was left that none can use. ``made``: there was such a pass, over the same tests.
    ``unknown`` says why there was none, though the devices that tests open may have times.
    """

    observations: Mapping[str, Observation] = {}
    unavailable: str | None = None
    stopped: str | None = None
    made: bool = False
    unknown: str | None = None

    def add_to(self, observation: Observation, *, is_new: bool = False) -> Observation:
        """Return what the wall pass observed of a test with what this pass did, or why not.

        Of a test that ``is_new``, nothing may be missing in silence: what its first baseline lacks,
        nobody misses later.
        """
        measured = self.observations.get(observation.node_id or observation.test)
        expected = self.unavailable or self.unknown or (self.made and is_new)
        if measured is None and not expected:
            return observation
        why = self.unavailable
        if measured is None and why is None:
            if not ran_a_model(observation):
                return observation
            why = self.unknown or (
                "the test was skipped in it, or did not measure; --ttnn-perf-passes=wall records "
                "a baseline without it"
            )
        measured = measured or unavailable(observation.test, f"device pass: {why}")
        return with_device(observation, measured)


def unavailable(test: str, why: str, source: Source = Source.DEVICE) -> Observation:
    """Return what is known of a test whose device told nothing: why."""
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})


def ran_a_model(observation: Observation) -> bool:
    """Return whether a test measured calls on a device: then a profiler has something to tell."""
    ended = (observation.lost, observation.raised, observation.out_of_memory)
    came_through = all(why is None for why in ended)
    called = not observation.metrics.keys().isdisjoint({FIRST_CALL, THROUGHPUT_TIME, COMPILE})
    return came_through and observation.hardware is not None and called


def _measured_twice(observation: Observation, of_device: Observation) -> Iterator[str]:
    """Yield what is told by a capture that the test attached and by another pass' profiler."""
    both = [
        name
        for name, ours in observation.metrics.items()
        if name in of_device.metrics and ours.samples and of_device.metrics[name].samples
        # What the test attaches in both passes is one capture.
        if ours.metric.source is not of_device.metrics[name].metric.source
    ]
    if both:
        source = of_device.metrics[both[0]].metric.source.value
        yield told_twice(both, "attach", f"the profiler {source}")


def _answered(of_device: Observation) -> Iterator[str]:
    """Yield what the wall pass says of limits for metrics that it lacks, and this one has."""
    for name, observed in of_device.metrics.items():
        limits = observed.limits
        # A limit that the device pass does not know, as under Tracy, must not be lost in silence.
        applied = {
            "tolerance": limits.tolerance is not None,
            "max_regression": limits.max_regression is not None,
            "target": limits.target is not None,
            "gate": observed.gated,
        }
        yield from (unrecorded(option, name) for option, holds in applied.items() if holds)


def with_device(observation: Observation, of_device: Observation) -> Observation:
    """Return what the wall pass observed of a test with what its device told in another pass."""
    answered = tuple(_answered(of_device))
    problems = [each for each in observation.problems if not each.startswith(answered)]
    observation = replace(
        observation, problems=(*problems, *_measured_twice(observation, of_device))
    )
    return replace(
        join_answers(observation, of_device),
        metrics={**observation.metrics, **of_device.metrics},
        ops=of_device.ops or observation.ops,
        environment={**of_device.environment, **observation.environment},
        problems=tuple(dict.fromkeys((*observation.problems, *of_device.problems))),
        dropped=of_device.dropped,
        bottleneck=of_device.bottleneck or observation.bottleneck,
        model_kind=of_device.model_kind or observation.model_kind,
        has_kernels=of_device.has_kernels or observation.has_kernels,
    )
