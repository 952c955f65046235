"""Device-perf helpers of tt-metal, and profiled processes that tests start."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.finding import HelperWindow, region_name
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Kind, Source, metric_in
from pytest_ttnn_perf.core.settings import HelperAsserts
from pytest_ttnn_perf.core.text import plain
from pytest_ttnn_perf.measure.existing.finder import Family
from pytest_ttnn_perf.measure.recorder import metric_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ttnn_perf.core.observation import Artifact
    from pytest_ttnn_perf.measure.existing.finder import Call
    from pytest_ttnn_perf.measure.recorder import Recorder


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
        """Make the call; measurements are kept also where a helper raises."""
        __tracebackhide__ = True
        recorder, instead = self._recorder, {}
        if name == "run_device_profiler":
            with recorder.observing():
                told = call.arguments
                recorder.profiles_itself = True
                subdir = str(told.get("output_logs_subdir", ""))
                self._commands[subdir] = str(told.get("command", ""))
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
            artifact: Artifact = wings.call("read_window", file, window, region)
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

_TIME: Final = "realtime_program_time"
_ASSERTS: Final = "assert_op_duration_merged"
_FRAMES: Final = 4


class RealtimeCalls(Family):
    """The measurements of one test with the real-time profiler."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._depth = 0
        self._names: dict[object, str] = {}
        #: Time on the slowest chip and sources of each program of the last call, by its id.
        self._programs: dict[int, tuple[float, tuple[str, ...]]] = {}

    def handle(self, name: str, call: Call) -> Any:
        """Make the call; the outermost helper knows what is measured."""
        __tracebackhide__ = True
        recorder, instead = self._recorder, {}
        if name == _ASSERTS and recorder.run.helper_asserts is HelperAsserts.TARGET:
            instead = {"margin": float("inf")}  # every time is within it
        frame = sys._getframe(_FRAMES)  # noqa: SLF001 (as warnings and logging find a caller)
        line = (frame.f_code.co_filename, frame.f_lineno)
        self._depth += 1
        try:
            result = call.make(**instead)
            if name == "profile_realtime_program":
                with recorder.observing():
                    self._programs = {}
                    for record in [result[1]] if isinstance(result[1], dict) else result[1]:
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
            metric = metric_in(region_name(plain(str(told["label"]))), _TIME)
            target = float(told["expected_ns"])
        else:
            samples = [sum(ns for ns, _ in programs)]
            # Lines are numbered by their first calls.
            number = len(self._names) + 1
            metric = self._names.setdefault(line, f"{_TIME}_{number}" if number > 1 else _TIME)
        # Not of kernels that are profiled, or of another machine than the recorded one.
        if self._recorder.instruments.by_the_clock:
            time = metric_of(metric, unit="ns", kind=Kind.TIME, source=Source.REALTIME)
            self._recorder.observed(time, samples).target = target


# Tests that start a profiled process of their own.
#
# Such a process waits for the chips that its parent has opened, for ever; and in a pass that is
# profiled it would be given our profiler's folder, which the helpers delete first.

_TRACY: Final = re.compile(r"(?:^|\s)-m\s+tracy(?:\s|$)")
#: What starts a process, with the place of its command among what is told of it.
_STARTS: Final = {"subprocess.Popen": 1, "os.system": 0, "os.posix_spawn": 1, "os.exec": 1}
_REMOVES: Final = "shutil.rmtree"
_FOLDER: Final = "TT_METAL_PROFILER_DIR"


class RunsApart(BaseException):
    """The end of a test that another worker runs again.

    Not an ``Exception``: no test is to catch it.
    """


class SelfProfilingWatch:
    """Watches the processes that a test starts.

    ``elsewhere``: another worker can run the test. ``profiled``: this process has been given the
    variables of our profiler. ``beside_others``: other processes run tests meanwhile, and may have
    the chips.
    """

    def __init__(
        self,
        has_opened_device: Callable[[], bool],
        *,
        profiled: bool = False,
        beside_others: bool = False,
        elsewhere: bool = False,
    ) -> None:
        self._has_opened_device = has_opened_device
        self._profiled = profiled
        self._beside_others = beside_others
        #: True if another worker would run a test that is stopped here.
        self.can_stop = elsewhere
        self._recorder: Recorder | None = None
        #: True if the running test was stopped.
        self.stopped = False

    def begin(self, recorder: Recorder) -> None:
        """Watch a test from now on."""
        global _watching, _hooked  # noqa: PLW0603 (a process has one set of hooks)
        self._recorder, _watching = recorder, self
        if not _hooked:
            _hooked = True
            sys.addaudithook(_hook)

    def end(self) -> None:
        """Watch nothing until the next test."""
        global _watching  # noqa: PLW0603
        self._recorder = _watching = None

    @property
    def must_not_profile(self) -> bool:
        """True if a profiled process would harm or hang here."""
        return self._profiled or self._beside_others or self._has_opened_device()

    def stop(self) -> None:
        """End the running test: another worker is going to run it."""
        __tracebackhide__ = True
        self.stopped = True
        raise RunsApart

    def notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise if what is about to happen must not be."""
        __tracebackhide__ = True
        folder = os.environ.get(_FOLDER) if self._profiled else None
        if event == _REMOVES:
            profiles = folder is not None and _is_in(folder, arguments[0])
        else:
            command = _text(arguments[_STARTS[event]])
            removes = bool(folder) and "rm " in command and str(folder) in command
            profiles = removes or _TRACY.search(command) is not None
        if not profiles or self._recorder is None:
            return
        self._recorder.profiles_itself = True
        if not self.must_not_profile:
            return
        if self.can_stop:
            self.stop()
        message = (
            "the test starts a profiled process, which would wait for ever for the device that "
            "this process has opened: leave out --ttnn-perf-isolate inline"
        )
        raise UsageError(message)


def _text(command: Any) -> str:
    if isinstance(command, (list, tuple)):
        return " ".join(os.fsdecode(word) for word in command if isinstance(word, (str, bytes)))
    return os.fsdecode(command) if isinstance(command, (str, bytes)) else str(command)


def _is_in(folder: str, removed: Any) -> bool:
    if not folder or not isinstance(removed, (str, os.PathLike)):
        return False
    whole, part = os.path.abspath(removed), os.path.abspath(folder)  # noqa: PTH100 (no links read)
    return part == whole or part.startswith(whole + os.sep)


#: The watch of the running test. Python keeps a hook for good: without a watch it does nothing.
_watching: SelfProfilingWatch | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching is not None and (event in _STARTS or event == _REMOVES):
        _watching.notice(event, arguments)
