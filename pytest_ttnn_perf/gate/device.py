"""Results of the device pass, joined with those of the wall pass."""

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
from pytest_ttnn_perf.gate.judging import join_answers

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeviceResults(Struct, frozen=True):
    """Results of the device pass, by test; empty without such a pass.

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
        """Add the results of this pass, or why there are none.

        Of a test that ``is_new``, nothing may be missing in silence: later runs would not miss it.
        """
        measured = self.observations.get(observation.node_id or observation.test)
        expected = self.unavailable or self.unknown or (self.made and is_new)
        if measured is not None:
            return with_device(observation, measured)
        if not expected or (self.unavailable is None and not _ran_a_model(observation)):
            return observation
        why = (
            self.unavailable
            or self.unknown
            or (
                "the test was skipped in it, or did not measure; --ttnn-perf-passes=wall records "
                "a baseline without it"
            )
        )
        return with_device(observation, unavailable(observation.test, f"device pass: {why}"))


def unavailable(test: str, why: str, source: Source = Source.DEVICE) -> Observation:
    """Return an observation without device times, and the reason."""
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})


def _ran_a_model(observation: Observation) -> bool:
    called = not observation.metrics.keys().isdisjoint({FIRST_CALL, THROUGHPUT_TIME, COMPILE})
    return not observation.ended and observation.hardware is not None and called


def with_device(observation: Observation, of_device: Observation) -> Observation:
    """Join the observations of the wall pass and of the device pass."""
    # The wall pass complains of limits for metrics that only the device pass has. A limit that the
    # device pass does not know, as under Tracy, must not be lost in silence.
    answered = []
    for name, observed in of_device.metrics.items():
        limits = observed.limits
        applied = {
            "tolerance": limits.tolerance is not None,
            "max_regression": limits.max_regression is not None,
            "target": limits.target is not None,
            "gate": observed.gated,
        }
        answered += [unrecorded(option, name) for option, holds in applied.items() if holds]
    problems = [each for each in observation.problems if not each.startswith(tuple(answered))]
    twice = [
        name
        for name, ours in observation.metrics.items()
        if name in of_device.metrics and ours.samples and of_device.metrics[name].samples
        # A capture that the test attaches in both passes is one.
        if ours.metric.source is not of_device.metrics[name].metric.source
    ]
    if twice:
        source = of_device.metrics[twice[0]].metric.source.value
        problems.append(told_twice(twice, "attach", f"the profiler {source}"))
    return replace(
        join_answers(observation, of_device),
        metrics={**observation.metrics, **of_device.metrics},
        ops=of_device.ops or observation.ops,
        environment={**of_device.environment, **observation.environment},
        problems=tuple(dict.fromkeys((*problems, *of_device.problems))),
        dropped=of_device.dropped,
        bottleneck=of_device.bottleneck or observation.bottleneck,
        model_kind=of_device.model_kind or observation.model_kind,
        has_kernels=of_device.has_kernels or observation.has_kernels,
    )
