"""Observers of helpers of tt-metal's tests, by family."""

from __future__ import annotations

import inspect
import re
import sys
from fnmatch import fnmatchcase
from math import isfinite
from numbers import Number
from pathlib import Path
from time import perf_counter_ns
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.finding import region_name
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Kind, Source, metric_in
from pytest_ttnn_perf.core.settings import HelperAsserts
from pytest_ttnn_perf.core.text import plain
from pytest_ttnn_perf.measure.recorder import metric_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ttnn_perf.measure.recorder import Recorder


# Lets calls of a function be observed, wherever its name was imported to.
#
# Most tests say ``from helpers import comp_pcc``, and keep the function under a name of their own,
# in a table or as a local. So it is the function itself that changes, not the names of it: its code
# is replaced by one that hands every call on. Name, signature, identity and attributes stay.


class Call(NamedTuple):
    """One call of an observed function, which has not been made yet."""

    original: Callable[..., Any]
    signature: inspect.Signature
    #: The names that the function sees: those of its own module.
    names: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def make(self, **instead: Any) -> Any:
        """Make the call, with other values for some arguments."""
        if not instead:
            return self.original(*self.args, **self.kwargs)
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.arguments.update(instead)
        return self.original(*bound.args, **bound.kwargs)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name, with defaults; empty if they do not fit."""
        try:
            bound = self.signature.bind(*self.args, **self.kwargs)
        except TypeError:  # the call is about to say so itself
            return {}
        bound.apply_defaults()
        return bound.arguments


#: Stands in the code below for what a call is handed on to: a constant, since the names that a
#: function can see are those of its own module.
_PLACE: Final = "ttnn-perf: what a call is handed on to"
#: The code that takes the place of a function's. It names the variables of other functions that
#: the function sees, and never reads them: their number belongs to the function and cannot change.
_TEMPLATE: Final = """\
def around({seen}):
    def handing_on(*ttnn_perf_args, **ttnn_perf_kwargs):
        ttnn_perf_observed = {place!r}
        return ttnn_perf_observed(*ttnn_perf_args, **ttnn_perf_kwargs)
        {seen}
    return handing_on
"""
_NO_PLAIN_CALL: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def can_be_observed(function: object) -> TypeGuard[FunctionType]:
    return isinstance(function, FunctionType) and not function.__code__.co_flags & _NO_PLAIN_CALL


def observe_calls(function: FunctionType, handle: Callable[[Call], Any]) -> Callable[[], None]:
    """Have ``handle`` make every call of a function; return what undoes that."""
    code, signature = function.__code__, inspect.signature(function)
    original = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    original.__dict__.update(function.__dict__)

    def hand_on(*args: Any, **kwargs: Any) -> Any:
        return handle(Call(original, signature, function.__globals__, args, kwargs))

    source = _TEMPLATE.format(seen=", ".join(code.co_freevars), place=_PLACE)
    module = compile(source, code.co_filename, "exec")
    around = next(each for each in module.co_consts if isinstance(each, CodeType))
    own = next(each for each in around.co_consts if isinstance(each, CodeType))
    has_own_signature = "__signature__" in vars(function)
    if not has_own_signature:
        function.__signature__ = signature  # type: ignore[attr-defined]
    function.__code__ = own.replace(
        co_consts=tuple(hand_on if each == _PLACE else each for each in own.co_consts),
        co_name=code.co_name,
        co_firstlineno=code.co_firstlineno,
    )

    def undo() -> None:
        function.__code__ = code
        if not has_own_signature:
            del function.__signature__  # type: ignore[attr-defined]

    return undo


class Family:
    """The calls of one family of helpers in one test."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def handle(self, name: str, call: Call) -> Any:
        raise NotImplementedError

    def finish(self) -> None:
        """Record what is known only now that the test has ended."""


# Helpers that check PCC. One calls another: the innermost has the number, the outermost the line of
# the test. Calls in one line are samples of one metric, of which the worst counts; lines are
# numbered as they come.

#: What helpers call the least PCC that they let pass.
_LIMITS: Final = ("pcc", "pcc_threshold", "required_pcc", "expected_pcc", "min_pcc", "threshold")
#: Of a helper that only tells the PCC, or that a test goes on after although it is not content: the
#: test has a limit of its own, which is not known.
_NO_LIMIT: Final = -1.0
_NUMBER: Final = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan)"
_PCC_IN_TEXT: Final = re.compile(rf"(?i)pcc\W*(?:is|of|value)?\W*{_NUMBER}")
_ONLY_NUMBER: Final = re.compile(rf"(?i)\s*{_NUMBER}\s*")
#: Frames between a helper's caller and ``_end``: the helper's own and those that hand it on.
_PCC_FRAMES: Final = 5


class HelperWindow(NamedTuple):
    """The part of a report that a call of a helper takes.

    ``skipped_rows`` are left out at the beginning. ``by_execution``: the mean of the rows of an op
    is the sample; otherwise the sum of all rows is.
    """

    op_name: str = ""
    has_signposts: bool = False
    skipped_rows: int = 0
    by_execution: bool = False


class HelperPcc(NamedTuple):
    """A PCC of a project's helper that the values do not confirm.

    ``told`` is None where the helper gave no number; ``ours`` is NaN where the PCC does not exist.
    ``sentence`` says what the helper passed over.
    """

    metric: str
    helper: str
    told: float | None
    ours: float
    sentence: str


class _Result(NamedTuple):
    """The verdict and the PCC that a helper returned, or None."""

    passed: bool | None
    pcc: float | None


_NOTHING: Final = _Result(None, None)


class _Comparison(NamedTuple):
    """Two tensors that a helper compared, its result, and its limit."""

    helper: str
    expected: object
    actual: object
    result: _Result
    limit: float | None


class PccCalls(Family):
    """The comparisons that one test makes."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        recorder.helper_pccs = []
        #: The limits of the calls that have not returned, the outermost first.
        self._limits: list[float | None] = []
        #: What the innermost helpers of the outermost call have compared so far.
        self._made: list[_Comparison] = []
        self._names: dict[tuple[str, int], str] = {}

    def handle(self, name: str, call: Call) -> Any:
        before = len(self._made)
        self._limits.append(_limit(call))
        try:
            returned = call.make()
        except BaseException:
            self._end(passed=False)
            raise
        result = _NOTHING
        with self._recorder.observing():
            result, values = _result(returned), list(call.arguments.values())
            # Another helper may know more, and another thing may have that name.
            if len(self._made) == before and result != _NOTHING and len(values) >= 2:
                limit = next((each for each in reversed(self._limits) if each is not None), None)
                self._made.append(_Comparison(name, values[0], values[1], result, limit))
        self._end(passed=result.passed)
        return returned

    def _end(self, *, passed: bool | None) -> None:
        """End a call; after the outermost, record all comparisons."""
        self._limits.pop()
        if self._limits:
            return
        made, self._made = self._made, []
        frame = sys._getframe(_PCC_FRAMES)  # noqa: SLF001 (as warnings and logging find a caller)
        line = (frame.f_code.co_filename, frame.f_lineno)
        with self._recorder.observing():
            for each in made:
                if each.result.passed is None:
                    each = each._replace(result=each.result._replace(passed=passed))  # noqa: PLW2901
                self._record(each, self._name(line))

    def _record(self, made: _Comparison, metric: str) -> None:
        from pytest_ttnn_perf.measure.pcc import compare, elements_of, passed_over

        sizes = [elements_of(made.expected), elements_of(made.actual)]
        most = self._recorder.run.observe_pcc_elements
        is_small = most > 0 and all(size is not None and size <= most for size in sizes)
        passed, pcc = made.result
        if pcc is None and is_small:
            computed = compare(made.expected, made.actual).pcc
            pcc = computed if isfinite(computed) else None
        if pcc is not None:
            limit = made.limit if passed and made.limit is not None else _NO_LIMIT
            self._recorder.observed_pcc(metric, pcc, at_least=limit)
        if passed is False or not is_small:
            return
        ours = passed_over(made.expected, made.actual, made.result.pcc)
        if ours is not None and self._recorder.helper_pccs is not None:
            found = HelperPcc(metric, made.helper, made.result.pcc, ours.pcc, ours.sentence or "")
            self._recorder.helper_pccs.append(found)

    def _name(self, line: tuple[str, int]) -> str:
        if line not in self._names:
            number = 1
            while (name := f"pcc_{number}" if number > 1 else "pcc") in self._names.values() or (
                self._recorder.series_of(name) is not None
            ):
                number += 1
            self._names[line] = name
        return self._names[line]


def _limit(call: Call) -> float | None:
    found = (value for name, value in call.arguments.items() if name in _LIMITS)
    return next((float(value) for value in found if _is_number(value)), None)


def _result(result: Any) -> _Result:
    if result is None:  # an assertion that held
        return _Result(passed=True, pcc=None)
    if isinstance(result, bool):
        return _Result(result, pcc=None)
    if isinstance(result, tuple) and len(result) >= 2:
        verdict = result[0]
        dtype = str(getattr(verdict, "dtype", "")).lower()
        if isinstance(verdict, bool) or "bool" in dtype:
            return _Result(bool(verdict), _pcc_in(result[1]))
    return _Result(None, _pcc_in(result) if _is_number(result) else None)


def _is_number(value: Any) -> bool:
    if isinstance(value, (bool, str, bytes)) or value is None:
        return False
    return isinstance(value, (int, float)) or getattr(value, "ndim", None) == 0


def _pcc_in(value: Any) -> float | None:
    """Return the PCC in a number or a message; NaN is one."""
    if isinstance(value, str):
        found = _PCC_IN_TEXT.search(value) or _ONLY_NUMBER.fullmatch(value)
        return float(found[1]) if found else None
    if not _is_number(value):
        return None
    number = float(value)
    return number if not isfinite(number) or abs(number) <= 1.001 else None


# Measurements that a test reports itself.

#: What is kept of a run, by the names of ``save_partial_run_json``: targets are matched by some.
_DESCRIBES: Final = (
    "ml_model_name", "batch_size", "input_sequence_length", "output_sequence_length", "run_type",
    "ml_model_type", "num_layers", "precision", "dataset_name", "image_dimension", "device_name",
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
            case "BenchmarkProfiler.start" | "Profiler.start":
                step, told = _step(call.arguments), call.arguments
                result = call.make()
                if getattr(told.get("self"), "disabled", False) and not told.get("force_enable"):
                    return result
                # From here on the step is timed, by the test as well: nothing may come in between.
                self._started_ns[step] = perf_counter_ns()
                return result
            case "BenchmarkProfiler.end" | "Profiler.end":
                now_ns = perf_counter_ns()
                result = call.make()
                step = _step(call.arguments)
                # One of utility_functions divides by the calls that it was around.
                count = _number(call.arguments.get("PERF_CNT")) or 1.0
                elapsed_ns = (now_ns - self._started_ns.pop(step, now_ns)) / count
                if step[1] and elapsed_ns >= _SHORTEST_NS:
                    self._steps_ns.setdefault(step[1], []).append(elapsed_ns)
                return result
        return call.make()

    def _measured(self, told: Mapping[str, Any]) -> None:
        step_name, value = told.get("step_name"), told.get("value")
        name = told.get("name", told.get("measurement_name"))
        declared = self._recorder.run.measurements
        metric, why, note = wings.captures.metric_of_measurement(
            plain(str(name)), plain(str(step_name)), declared
        )
        number, target = _number(value), _number(told.get("target"))
        if number is None:
            why = f"not a number: {plain(repr(value))[:40]}"
        series = self._recorder.observed(
            metric, () if number is None else (number,), why_ungated=why
        )
        series.target, series.note = series.target if target is None else target, note
        self._reported.add(str(step_name))
        if step_name == _DEVICE_STEP:
            self._of_reports.append(metric.name)

    def finish(self) -> None:
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
    profiler, name = id(told.get("self")), told.get("step_name", told.get("key", ""))
    return profiler, plain(str(name)), told.get("iteration", 0)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, Number) or hasattr(value, "item"):
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            return None
    return None


# tt-metal's device-perf helpers: they profile a command in a child, and read its report.
#
# ``post_process_ops_log`` decides which report is read and what of it counts: signposts, one op,
# without the first rows. The same of the same report is the metric here, on one device; the times
# of several devices, which the helpers add up, are those of the slowest: devices run side by side.

#: How the helpers name the report that they read; each looks it up in its own module.
_LATEST: Final = "get_latest_ops_log_filename"
_DURATION: Final = "AVG DEVICE KERNEL DURATION [ns]"
_RATE: Final = "AVG DEVICE KERNEL SAMPLES/S"


class DevicePerfCalls(Family):
    """The reports that one test has read, and its expectations of them."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        #: The command that was profiled last, by the folder of its reports.
        self._commands: dict[str, str] = {}
        #: The name of each measurement: of a command, and a window of its report.
        self._regions: dict[tuple[str, str, HelperWindow], str] = {}
        self._read: set[tuple[Path, str]] = set()
        self._devices = 1

    def handle(self, name: str, call: Call) -> Any:
        recorder, instead = self._recorder, {}
        if name == "run_device_profiler":
            with recorder.observing():
                told = call.arguments
                recorder.profiles_itself = True
                subdir = str(told.get("output_logs_subdir", ""))
                self._commands[subdir] = str(told.get("command", ""))
        elif name == "run_device_perf_test":  # of TT-CNN: the others do its work
            with recorder.observing():
                config = call.arguments.get("config")
                of_config = {"ml_model_name": "model_name", "batch_size": "batch_size"}
                recorder.described |= {
                    key: plain(getattr(config, own))
                    for key, own in of_config.items()
                    if isinstance(getattr(config, own, None), (str, int))
                }
        elif name == "check_device_perf":
            with recorder.observing():
                self._expected(call.arguments)
            if recorder.run.helper_asserts is HelperAsserts.TARGET:
                instead = {"assert_on_fail": False}
        try:
            return call.make(**instead)
        finally:
            if name.startswith("post_process"):
                with recorder.observing():
                    self._post_processed(call, detailed=name.endswith("_detailed"))

    def _post_processed(self, call: Call, *, detailed: bool) -> None:
        told, latest = call.arguments, call.names.get(_LATEST)
        subdir = str(told.get("output_logs_subdir", ""))
        try:
            file = Path(latest(subdir)) if latest is not None else None
        except (OSError, LookupError, TypeError):  # the helper itself has just said so
            return
        if file is None or not file.is_file():
            return
        op_name = plain(str(told.get("op_name") or ""))
        window = HelperWindow(
            op_name,
            bool(told.get("has_signposts")),
            int(told.get("warmup_iters") or 0),
            by_execution=detailed and bool(op_name),
        )
        region = self._region(subdir, window)
        if (file, region) not in self._read:
            self._read.add((file, region))
            artifact = wings.captures.read_window(file, window, region)
            self._devices = max(self._devices, artifact.devices or 1)
            self._recorder.take_report(file, artifact)

    def _region(self, subdir: str, window: HelperWindow) -> str:
        """Name a measurement; others of the same name are numbered in order."""
        key = (self._commands.get(subdir, ""), subdir, window)
        if key not in self._regions:
            base = region_name(window.op_name)
            taken, name, number = set(self._regions.values()), base, 1
            while name in taken:
                number += 1
                name = f"{base}_{number}" if base else f"command_{number}"
            self._regions[key] = name
        return self._regions[key]

    def _expected(self, told: Mapping[str, Any]) -> None:
        """Keep the expected kernel time of one device as a target."""
        results, expected = told["post_processed_results"], told["expected_perf_cols"]
        series = self._recorder.series_of(KERNEL_TIME)
        if series is None or self._devices > 1:
            return
        if _DURATION in expected:
            series.target = float(expected[_DURATION])
        elif _RATE in expected and _DURATION in results:
            # The batch size is in both: rate x time.
            series.target = float(results[_DURATION] * results[_RATE] / expected[_RATE])


# tt-metal's helpers around the real-time profiler: the device time of programs, as they run.

_REALTIME: Final = "realtime_program_time"
_ASSERTS: Final = "assert_op_duration_merged"
_REALTIME_FRAMES: Final = 4


class RealtimeCalls(Family):
    """The measurements of one test with the real-time profiler."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._depth = 0
        self._names: dict[object, str] = {}
        #: Time on the slowest chip and sources of each program of the last call, by its id.
        self._programs: dict[int, tuple[float, tuple[str, ...]]] = {}

    def handle(self, name: str, call: Call) -> Any:
        recorder, instead = self._recorder, {}
        if name == _ASSERTS and recorder.run.helper_asserts is HelperAsserts.TARGET:
            instead = {"margin": float("inf")}  # every time is within it
        frame = sys._getframe(_REALTIME_FRAMES)  # noqa: SLF001 (as warnings and logging find a caller)
        line = (frame.f_code.co_filename, frame.f_lineno)
        self._depth += 1
        try:
            result = call.make(**instead)
            if name == "profile_realtime_program":
                with recorder.observing():
                    self._programs = {}
                    alone = isinstance(result[1], dict)
                    for record in [result[1]] if alone else result[1]:
                        if not (record["runtime_id"] or alone):  # of no program: helpers skip it
                            continue
                        sources = tuple(record.get("kernel_sources", ()))
                        slowest_ns, known = self._programs.get(record["runtime_id"], (0.0, sources))
                        slowest_ns = max(slowest_ns, float(record["duration_ns"]))
                        self._programs[record["runtime_id"]] = (slowest_ns, known)
            return result
        finally:
            self._depth -= 1
            if not self._depth and self._programs:
                with recorder.observing():
                    self._record(name, call.arguments, line)

    def _record(self, name: str, told: Mapping[str, Any], line: object) -> None:
        programs, self._programs, target = list(self._programs.values()), {}, None
        if name == _ASSERTS:
            path = str(told["kernel_path"])
            samples = [
                ns for ns, sources in programs if any(path in s.replace("\\", "/") for s in sources)
            ]
            if len(samples) != told.get("iters", 1):  # the helper has failed the test
                return
            metric = metric_in(region_name(plain(str(told["label"]))), _REALTIME)
            target = float(told["expected_ns"])
        else:
            samples = [sum(ns for ns, _ in programs)]
            # Lines are numbered by their first calls.
            number = len(self._names) + 1
            metric = self._names.setdefault(
                line, f"{_REALTIME}_{number}" if number > 1 else _REALTIME
            )
        # Not of kernels that are profiled, or of another machine than the recorded one.
        if self._recorder.instruments.by_the_clock:
            time = metric_of(metric, unit="ns", kind=Kind.TIME, source=Source.REALTIME)
            self._recorder.observed(time, samples).target = target
