"""``BenchmarkData`` and ``BenchmarkProfiler``: what tt-metal's tests report of a model.

Outside of CI the helpers themselves keep nothing. Every report of theirs passes through
``add_measurement``, which is seen before that.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from numbers import Number
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Kind, metric_in
from pytest_ttnn_perf.core.text import plain
from pytest_ttnn_perf.measure.existing.finder import Family
from pytest_ttnn_perf.measure.recorder import metric_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.measure.existing.finder import Call
    from pytest_ttnn_perf.measure.recorder import Recorder


#: What is kept of a run, by the names of ``save_partial_run_json``: targets are matched by some.
_DESCRIBES: Final = (
    "ml_model_name", "batch_size", "input_sequence_length", "output_sequence_length", "run_type",
    "ml_model_type", "num_layers", "precision", "dataset_name", "image_dimension",
)  # fmt: skip
#: The step under which ``prep_device_perf_report`` tells what it has read from a report.
_DEVICE_STEP: Final = "device_perf"
#: A step that ends so soon after it began measured nothing: reports make some for their form.
_SHORTEST_NS: Final = 100_000
_STEP: Final = "step_time"


class BenchmarkCalls(Family):
    """The measurements that one test reports, and the steps that it times."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._started_ns: dict[tuple[int, str, Any], int] = {}
        self._steps_ns: dict[str, list[float]] = {}
        #: The steps that the test reports something of: that is their result. ``run`` is all of it.
        self._reported = {"run"}
        #: What was told of a report that may be read, and so be gated, with more detail.
        self._of_reports: list[str] = []

    def handle(self, name: str, call: Call) -> Any:
        """Make a call, and record it."""
        __tracebackhide__ = True
        # Measurements are recorded first: outside of CI the helper returns, in CI it may refuse.
        match name:
            case "BenchmarkData.add_measurement":
                with self._recorder.observing():
                    self._measured(call.arguments)
            case "BenchmarkData.save_partial_run_json":
                with self._recorder.observing():
                    told = call.arguments
                    self._recorder.described |= {
                        name: plain(told[name])
                        for name in _DESCRIBES
                        if isinstance(told.get(name), (str, int, float))
                    }
            case "BenchmarkProfiler.start":
                step = _step(call.arguments)
                result = call.make()
                # From here on the step is timed, by the test as well: nothing may come in between.
                self._started_ns[step] = perf_counter_ns()
                return result
            case "BenchmarkProfiler.end":
                now_ns = perf_counter_ns()
                result = call.make()
                step = _step(call.arguments)
                elapsed_ns = now_ns - self._started_ns.pop(step, now_ns)
                if elapsed_ns >= _SHORTEST_NS:
                    self._steps_ns.setdefault(step[1], []).append(elapsed_ns)
                return result
        return call.make()

    def _measured(self, told: Mapping[str, Any]) -> None:
        step_name, value = told.get("step_name"), told.get("value")
        name = told.get("name", told.get("measurement_name"))
        metric, why = wings.call("known_metric", plain(str(name)), plain(str(step_name)))
        number, target = _number(value), _number(told.get("target"))
        if number is None:
            why = f"not a number: {plain(repr(value))[:40]}"
        series = self._recorder.observed(
            metric, () if number is None else (number,), why_ungated=why
        )
        series.target = series.target if target is None else target
        self._reported.add(str(step_name))
        if step_name == _DEVICE_STEP:
            self._of_reports.append(metric.name)

    def finish(self) -> None:
        """Gate the more detailed one of two metrics of the same report."""
        with self._recorder.observing():
            kernel_time = self._recorder.series_of(KERNEL_TIME)
            if kernel_time is not None and kernel_time.samples:
                for name in self._of_reports:
                    series = self._recorder.series_of(name)
                    if series is not None and series.gated:
                        series.gated = False
                        series.why_ungated = f"{KERNEL_TIME} is gated, from the same report"
            self._record_steps()

    def _record_steps(self) -> None:
        has_better = self._recorder.gates_something
        for step, samples in self._steps_ns.items():
            if step in self._reported:
                continue
            metric = metric_of(metric_in(step, _STEP), unit="ns", kind=Kind.TIME)
            why = None
            if metric.name not in self._recorder.settings.gate:
                if not any(fnmatchcase(step, pattern) for pattern in self._recorder.run.gate_steps):
                    why = "a step that gate_steps does not name"
                elif has_better:
                    why = "a step of a test that reports its results"
            self._recorder.observed(metric, samples, why_ungated=why)


def _step(told: Mapping[str, Any]) -> tuple[int, str, Any]:
    profiler = id(told.get("self"))
    return profiler, plain(str(told.get("step_name", ""))), told.get("iteration", 0)


def _number(value: Any) -> float | None:
    """Return the number in a value or a one-element tensor, else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Number) or hasattr(value, "item"):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            return None
    return None
