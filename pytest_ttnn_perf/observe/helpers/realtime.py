"""tt-metal's helpers around the real-time profiler: the device time of programs, as they run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.text import plain
from pytest_ttnn_perf.observe.series import metric_of
from pytest_ttnn_perf.records.metric import Kind, Source, metric_in
from pytest_ttnn_perf.records.region import region_name
from pytest_ttnn_perf.records.settings import HelperAsserts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.observe.helpers.patches import Call
    from pytest_ttnn_perf.observe.recorder import Recorder


_TIME: Final = "realtime_program_time"
_FRAMES: Final = 4
#: A margin that every time is within.
_ANY: Final = float("inf")


class RealtimeCalls:
    """What one test has measured with the real-time profiler."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._depth = 0
        self._names: dict[object, str] = {}
        #: The programs of the last call, by their id, merged over chips.
        self._programs: list[tuple[float, tuple[str, ...]]] = []

    def handle(self, name: str, call: Call) -> Any:
        """Make the call; the outermost helper knows what is measured."""
        __tracebackhide__ = True
        instead = {}
        if name == "assert_op_duration_merged" and (
            self._recorder.run.helper_asserts is HelperAsserts.TARGET
        ):
            instead = {"margin": _ANY}
        frame = sys._getframe(_FRAMES)  # noqa: SLF001 (as warnings and logging find a caller)
        line = (frame.f_code.co_filename, frame.f_lineno)
        self._depth += 1
        try:
            result = call.make(**instead)
            if name == "profile_realtime_program":
                with self._recorder.observing():
                    self._programs = _merged(result[1])
            return result
        finally:
            self._depth -= 1
            if not self._depth and self._programs:
                with self._recorder.observing():
                    self._record(name, call.arguments, line)

    def _record(self, name: str, told: Mapping[str, Any], line: object) -> None:
        programs, self._programs = self._programs, []
        if name != "assert_op_duration_merged":
            self._observed(self._name(line), [sum(ns for ns, _ in programs)])
            return
        path = str(told["kernel_path"])
        matched = [ns for ns, sources in programs if any(path in _slashes(s) for s in sources)]
        if len(matched) == told.get("iters", 1):  # or the helper has failed the test
            label = region_name(plain(str(told["label"])))
            name = metric_in(label, _TIME)
            self._observed(name, matched, target=float(told["expected_ns"]))

    def _observed(self, name: str, samples: list[float], target: float | None = None) -> None:
        if not self._recorder.instruments.by_the_clock:
            return  # of kernels that are profiled, or of another machine than the recorded one
        metric = metric_of(name, unit="ns", kind=Kind.TIME, source=Source.REALTIME)
        series = self._recorder.observed(metric, samples)
        series.target = target

    def _name(self, line: object) -> str:
        """Return the name of what a line measures: numbered in the order of their first calls."""
        if line not in self._names:
            number = len(self._names) + 1
            self._names[line] = f"{_TIME}_{number}" if number > 1 else _TIME
        return self._names[line]

    def finish(self) -> None:
        """Nothing is left to do."""


def _merged(records: Any) -> list[tuple[float, tuple[str, ...]]]:
    """Return the programs of some records: of each, the time of its slowest chip."""
    listed: Iterable[Any] = [records] if isinstance(records, dict) else records
    programs: dict[int, tuple[float, tuple[str, ...]]] = {}
    for record in listed:
        ns, sources = float(record["duration_ns"]), tuple(record.get("kernel_sources", ()))
        before = programs.get(record["runtime_id"], (0.0, sources))
        programs[record["runtime_id"]] = (max(ns, before[0]), before[1])
    return list(programs.values())


def _slashes(path: str) -> str:
    return path.replace("\\", "/")


FAMILY: Final = RealtimeCalls
