"""What a model is measured with: a clock alone, or a clock beside devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.measure.sampling import measure, measure_pipelined
from pytest_ttnn_perf.model.artifact import NO_ARTIFACT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.measure.sampling import Timings, Workload
    from pytest_ttnn_perf.model.artifact import Artifact
    from pytest_ttnn_perf.model.observation import Observation


@dataclass(frozen=True, slots=True)
class Plan:
    """How often a model is called: for samples of ``depth`` calls each, if that is given."""

    warmup: int
    iterations: int
    depth: int | None = None


class Instruments:
    """A clock alone. Those beside devices, or in place of them, know more."""

    #: Whether what a test attaches, or prints, is taken.
    takes_artifacts = True
    #: Whether the times of this machine's clock are results: then it matters what else it does.
    by_the_clock = True

    @property
    def sync(self) -> Callable[[], object] | None:
        """Waits for the devices in use; None without any."""
        return None

    def begin(self, test: str) -> None:
        """A test begins, with its set-up."""

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:
        """Call a model as planned and time it; return the last result."""
        if plan.depth is None:
            return measure(workload, timings, warmup=plan.warmup, iterations=plan.iterations)
        return measure_pipelined(
            workload, timings, warmup=plan.warmup, iterations=plan.iterations, depth=plan.depth
        )

    def measured(self) -> Artifact:
        """Return what else is known of the model that was run last."""
        return NO_ARTIFACT

    def printed(self, text: str) -> Artifact:
        """Return what the output of the test tells."""
        if not text:
            return NO_ARTIFACT
        from pytest_ttnn_perf.workflow.printed import printed_artifact

        return printed_artifact(text)

    def ended(self, test: str) -> Artifact:  # noqa: ARG002 (what others ask for)
        """Return what is known of a test once it has ended."""
        return NO_ARTIFACT

    def explanation(self, error: str) -> str | None:  # noqa: ARG002
        """Return what is known of an error that ended a test; None for nothing."""
        return None

    def completed(self, observation: Observation, artifact: Artifact) -> Observation:  # noqa: ARG002
        """Return an observation with what is known of the hardware."""
        return observation


@dataclass(frozen=True, slots=True)
class Replaying(Instruments):
    """Artifacts recorded elsewhere in place of devices."""

    takes_artifacts = False
    by_the_clock = False

    root: Path

    def printed(self, text: str) -> Artifact:  # noqa: ARG002
        """Return nothing: what tells of this machine is not wanted."""
        return NO_ARTIFACT

    def ended(self, test: str) -> Artifact:
        """Return what was recorded of a test."""
        from pytest_ttnn_perf.workflow.replay import replayed

        return replayed(self.root, test)

    def completed(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return the observation as one of the recorded hardware."""
        from pytest_ttnn_perf.workflow.replay import without_own_times

        return without_own_times(observation, artifact)
