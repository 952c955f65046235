"""Open devices, profilers and graph captures, inside the measured process.

A profiler is asked to ``begin`` after the warm-up, and to ``take`` after each iteration. Both
synchronise first. What cannot be trusted is a problem, never a number.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import os
import re
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping  # noqa: TC003  # read when a script is decoded
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.baseline import ops_path
from pytest_ttnn_perf.core.hardware import UNKNOWN, Hardware, Scalar
from pytest_ttnn_perf.core.metric import WALL_TIME
from pytest_ttnn_perf.core.text import text_of
from pytest_ttnn_perf.machine.chips import lock_folder, ttlang_lock
from pytest_ttnn_perf.machine.environment import (
    MOCK,
    SIMULATOR,
    SLOW_DISPATCH,
    TTLANG_LOGS,
    is_simulated,
)
from pytest_ttnn_perf.machine.processes import run_shown
from pytest_ttnn_perf.machine.ttnn import (
    cause_of,
    error_text,
    name_of,
    plain,
    put_in_place,
    when_imported,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType

    from pytest_ttnn_perf.measure.observer import Observer


class Runtime:
    """The loaded module."""

    def __init__(self, ttnn: ModuleType) -> None:
        self.ttnn = ttnn

    def synchronize(self, devices: Iterable[Any]) -> None:
        for device in devices:
            self.ttnn.synchronize_device(device)

    def hardware(self, device: Any) -> Hardware:
        simulated = is_simulated(os.environ)
        return Hardware(name_of(device.arch()), self.board, mesh_of(device), simulated=simulated)

    @property
    def board(self) -> str:
        """The physical system, from the cluster of an open device."""
        try:
            return name_of(self.ttnn.cluster.get_cluster_type())
        except (AttributeError, RuntimeError):
            return UNKNOWN

    def grid(self, device: Any) -> str | None:
        """Return the cores that a device has for work, such as ``8x7``."""
        try:
            size = device.compute_with_storage_grid_size()
            return f"{size.x}x{size.y}"
        except (AttributeError, RuntimeError):
            return None

    def program_cache_entries(self, devices: Iterable[Any]) -> int | None:
        """Return the number of cached programs; None where unknown."""
        try:
            return sum(int(device.num_program_cache_entries()) for device in devices)
        except (AttributeError, RuntimeError):
            return None

    def is_capturing_trace(self, devices: Iterable[Any]) -> bool:
        """Return whether ops are recorded instead of run, where known."""
        ask = getattr(self.ttnn, "is_trace_capture_active", None)
        try:
            return ask is not None and any(ask(device) for device in devices)
        except (TypeError, RuntimeError):
            return False


def mesh_of(device: Any) -> str:
    return "x".join(map(str, getattr(device, "shape", ()))) or "1x1"


def chips_of(device: Any) -> tuple[int, ...]:
    try:
        return tuple(int(chip) for chip in device.get_device_ids())
    except (AttributeError, TypeError, RuntimeError):
        return ()


_OPENERS: Final = ("open_device", "open_mesh_device", "CreateDevice", "CreateDevices")
_CLOSERS: Final = ("close_device", "close_mesh_device", "CloseDevice", "CloseDevices")
#: What decides how fast a device is, as TTNN names it, and what it is when nobody says.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "num_command_queues": 1,
    "trace_region_size": 0,
    "l1_small_size": 0,
    "worker_l1_size": 0,
}


class UsedDevice(Struct, frozen=True, eq=False):
    """A device or mesh as it was opened, open or not."""

    hardware: Hardware
    chips: tuple[int, ...]
    configuration: Mapping[str, Scalar]


class OpenDevices:
    """The devices of this process, observed without opening or asking any."""

    def __init__(
        self, on_open: Callable[[], None] | None = None, runtime: Runtime | None = None
    ) -> None:
        self.on_open = on_open
        self.runtime = runtime
        #: Whether a device was opened: its chips are this process' until it exits, closed or not.
        self.has_opened = False
        self._open: list[tuple[Any, UsedDevice]] = []
        self._used: list[UsedDevice] = []
        self._fabric: str | None = None

    def observe(self) -> None:
        """Take notice of every device that is opened from now on."""
        when_imported("ttnn", self._observe)

    def begin_test(self) -> None:
        """Forget closed devices: the next test did not use them."""
        self._used = [device for _, device in self._open]

    @property
    def handles(self) -> list[Any]:
        return [handle for handle, _ in self._open]

    @property
    def used(self) -> UsedDevice | None:
        return max(self._used, key=lambda device: len(device.chips), default=None)

    @property
    def chips(self) -> frozenset[int]:
        return frozenset(chip for _, device in self._open for chip in device.chips)

    def synchronize(self) -> None:
        if self.runtime is not None:
            self.runtime.synchronize(self.handles)

    def _observe(self, ttnn: ModuleType) -> None:
        self.runtime = Runtime(ttnn)
        for name in _OPENERS:
            put_in_place(name, ttnn, self._opener)
        for name in _CLOSERS:
            put_in_place(name, ttnn, self._closer)
        put_in_place("set_fabric_config", ttnn, self._fabric_setter)

    def _opener(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            self.has_opened = True
            if self.on_open is not None:
                self.on_open()  # before: what hangs in there leaves the device as well
            result = original(*args, **kwargs)
            arguments = _arguments(original, args, kwargs)
            for handle in result.values() if isinstance(result, dict) else [result]:
                self._add(handle, arguments)
            return result

        return opened

    def _closer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def closed(*args: Any, **kwargs: Any) -> Any:
            device = next(iter((*args, *kwargs.values())), None)
            gone = list(device.values()) if isinstance(device, dict) else [device]
            for handle in gone:
                self._forget(handle)
            return original(*args, **kwargs)

        return closed

    def _fabric_setter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def set_fabric_config(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            config = args[0] if args else kwargs.get("config")
            self._fabric = str(plain(config))
            return result

        return set_fabric_config

    def _add(self, handle: Any, arguments: Mapping[str, Any]) -> None:
        assert self.runtime is not None
        # CreateDevice may go through open_device: one device is one, the outer call knows more.
        for known in self._forget(handle):
            self._used.remove(known)
        device = UsedDevice(
            self.runtime.hardware(handle),
            chips_of(handle),
            dict(self._configuration(handle, arguments)),
        )
        self._open.append((handle, device))
        self._used.append(device)

    def _forget(self, handle: Any) -> list[UsedDevice]:
        known = [device for opened, device in self._open if opened is handle]
        self._open = [(opened, device) for opened, device in self._open if opened is not handle]
        return known

    def _configuration(
        self, handle: Any, arguments: Mapping[str, Any]
    ) -> Iterator[tuple[str, Scalar]]:
        assert self.runtime is not None
        yield from ((name, plain(arguments.get(name, usual))) for name, usual in _DEFAULTS.items())
        grid = self.runtime.grid(handle)
        if grid is not None:
            yield "grid", grid
        dispatch = arguments.get("dispatch_core_config")
        for part in ("type", "axis"):
            if getattr(dispatch, part, None) is not None:
                yield f"dispatch_core_{part}", plain(getattr(dispatch, part))
        if self._fabric not in {None, "disabled"}:
            yield "fabric", self._fabric
        # Said only where they hold: what was stored without them stays comparable.
        if SLOW_DISPATCH in os.environ:
            yield "slow_dispatch", True
        if os.environ.get(MOCK) and not os.environ.get(SIMULATOR):
            yield "mock_cluster", True


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return arguments by name, as far as the signature is known."""
    try:
        return inspect.signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return kwargs


# Profilers, and graph captures.

#: Kernel times of the programs of one call, by chip, in order.
Chips: TypeAlias = "dict[int, list[float]]"

_KERNEL: Final = "DEVICE KERNEL DURATION [ns]"
#: Records come from another thread; so long none must have come before they are all there ...
_SETTLED_S: Final = 0.1
#: ... and so long is waited for them at most.
_PATIENCE_S: Final = 1.0
_POLL_S: Final = 0.01


class ProfilerError(Exception):
    """A profiler has nothing that could be trusted; its text says why."""


class ProgramProfiler(Struct):
    """The device profiler of Tracy-enabled builds, read out after each iteration."""

    devices: OpenDevices

    def begin(self) -> None:
        runtime = self.devices.runtime
        assert runtime is not None
        if runtime.is_capturing_trace(self.devices.handles):
            message = "a trace is being captured, during which the profiler cannot be read"
            raise ProfilerError(message)
        self.devices.synchronize()
        for handle in self.devices.handles:
            _ask(runtime.ttnn.ReadDeviceProfiler, handle)

    def take(self) -> Chips:
        """Read out what one iteration ran.

        Raises:
            ProfilerError: that is not known, or not wholly.
        """
        self.begin()
        assert self.devices.runtime is not None
        times: dict[int, list[float]] = defaultdict(list)
        latest = _ask(self.devices.runtime.ttnn.get_latest_programs_perf_data)
        for chip, programs in sorted(latest.items()):
            for program in programs:
                results = program.program_analyses_results
                if _KERNEL not in results:
                    message = f"a program of chip {chip} has no {_KERNEL}"
                    raise ProfilerError(message)
                duration = float(results[_KERNEL].duration)
                if not 0 < duration < math.inf:
                    message = f"a program of chip {chip} has a {_KERNEL} of {duration:g}"
                    raise ProfilerError(message)
                times[int(chip)].append(duration)
        return _checked(times, self.devices.chips, "the device profiler")

    def end(self) -> None:
        """Nothing is left open."""


class RealtimeProfiler(Struct):
    """The real-time profiler of any build, on hardware with fast dispatch.

    To ask for it before a device is open ends the process: it is made when one is.
    """

    devices: OpenDevices
    _records: list[Any] = []
    _dropped: int = 0
    _received_s: float = 0.0
    _handle: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def unavailable(self) -> str | None:
        """Why there are no records; None where there should be some."""
        runtime = self.devices.runtime
        if runtime is None or not self.devices.handles:
            return "no device is open"
        active = getattr(runtime.ttnn.device, "IsProgramRealtimeProfilerActive", None)
        if active is None:
            return "this ttnn has no real-time profiler"
        if not _ask(active):
            return "the real-time profiler is not active on this system"
        return None

    def begin(self) -> None:
        why = self.unavailable
        if why is not None:
            raise ProfilerError(why)
        assert self.devices.runtime is not None
        if self._handle is None:  # the first handle there is is 0
            register = self.devices.runtime.ttnn.device.RegisterProgramRealtimeProfilerCallback
            self._handle = _ask(register, self._receive)
        self._settle(needed=False)
        with self._lock:
            self._records.clear()
            self._dropped = 0

    def take(self) -> Chips:
        """Wait until the records of one iteration are there, and return them.

        Raises:
            ProfilerError: they are missing, or not whole.
        """
        self._settle(needed=True)
        with self._lock:
            records, dropped = list(self._records), self._dropped
            self._records.clear()
        if dropped:
            message = f"the real-time profiler dropped {dropped} records"
            raise ProfilerError(message)
        times: dict[int, list[float]] = defaultdict(list)
        for record in records:
            cycles = record.end_timestamp - record.start_timestamp
            if cycles < 0 or record.frequency <= 0:
                found = f"{cycles} cycles at {record.frequency} per ns"
                message = f"the real-time profiler reported an invalid time: {found}"
                raise ProfilerError(message)
            times[int(record.chip_id)].append(cycles / record.frequency)
        return _checked(times, self.devices.chips, "the real-time profiler")

    def end(self) -> None:
        """Stop listening."""
        if self._handle is not None:
            assert self.devices.runtime is not None
            self.devices.runtime.ttnn.device.UnregisterProgramRealtimeProfilerCallback(self._handle)
            self._handle = None

    def _receive(self, batch: Any) -> None:
        with self._lock:
            self._records += batch.records
            self._dropped += batch.dropped
            self._received_s = time.monotonic()

    def _settle(self, *, needed: bool) -> None:
        """Wait until nothing has come for a while; not for ever.

        If something is ``needed``, the silence before the first record does not count.
        """
        self.devices.synchronize()
        start = time.monotonic()
        while True:
            now = time.monotonic()
            quiet_s = now - max(self._received_s, start)
            received = bool(self._records or self._dropped) or not needed
            if (received and quiet_s >= _SETTLED_S) or now - start >= _PATIENCE_S:
                return
            time.sleep(max(_SETTLED_S - quiet_s, _POLL_S))


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ttnn's profilers; a failure costs the times, not the test."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        raise ProfilerError(cause_of(text_of(error))) from error


def _checked(times: Chips, expected: frozenset[int], profiler: str) -> Chips:
    """Refuse some chips for all: the slowest may be missing."""
    if not times:
        message = f"{profiler} recorded nothing"
        raise ProfilerError(message)
    missing = sorted(expected - times.keys())
    if missing:
        chips = ", ".join(map(str, missing))
        message = f"nothing was recorded for chip {chips} of {len(expected)}"
        raise ProfilerError(message)
    return dict(sorted(times.items()))


_DATABASE: Final = "db.sqlite"
#: The captured graph, beside the database that is made of it.
GRAPH_FILE: Final = "graph_capture.json"
_RECORDING_OFF: Final = "disable_python_io_recording"
_CAPTURING: Final = ("begin_graph_capture", "end_graph_capture_to_file", "import_report")


class CapturedGraph(Struct):
    """The result of a capture: a database, or why not."""

    database: Path | None = None
    problem: str | None = None
    unavailable: str | None = None


@contextmanager
def captured_graph(runtime: Runtime, folder: Path) -> Iterator[CapturedGraph]:
    """Capture what runs meanwhile into a report database in ``folder``.

    A capture that fails costs the database alone: the model runs as it would without.
    """
    captured = CapturedGraph()
    graph: Any = getattr(runtime.ttnn, "graph", None)
    missing = [name for name in _CAPTURING if not hasattr(graph, name)]
    if missing:
        captured.unavailable = f"this ttnn has no graph.{missing[0]}"
        yield captured
        return
    captured.problem = _begin(graph, folder)
    if captured.problem is not None:
        yield captured
        return
    try:
        yield captured
    except BaseException:
        _give_up(graph)  # the model's own error is what counts
        raise
    _end(graph, folder, captured)


def _begin(graph: Any, folder: Path) -> str | None:
    begun = False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _DATABASE).unlink(missing_ok=True)  # that of an earlier capture
        graph.begin_graph_capture(graph.RunMode.NORMAL)
        begun = True
        if "torch" not in sys.modules and hasattr(graph, _RECORDING_OFF):
            # Otherwise every op imports torch, which ttnn itself has loaded where there is one.
            getattr(graph, _RECORDING_OFF)()
    except Exception as error:  # noqa: BLE001 (whatever a release raises: no capture then)
        if begun:
            _give_up(graph)
        return _first_line(error)
    return None


def _end(graph: Any, folder: Path, captured: CapturedGraph) -> None:
    report, database = folder / GRAPH_FILE, folder / _DATABASE
    ended = False
    try:
        graph.end_graph_capture_to_file(str(report))
        ended = True
        graph.import_report(str(report), str(folder))
    except Exception as error:  # noqa: BLE001
        if not ended:
            _give_up(graph)
        captured.problem = _first_line(error)
        return
    if database.exists():
        captured.database = database
    else:
        captured.problem = "the capture was imported, but there is no db.sqlite"


def _give_up(graph: Any) -> None:
    with suppress(Exception):
        graph.end_graph_capture()


def _first_line(error: Exception) -> str:
    return error_text(type(error).__name__, text_of(error))


def keep(folder: Path, place: Path) -> None:
    """Put the folder of a capture in its place.

    Raises:
        OSError: it cannot be moved, or another process was quicker.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    folder.rename(place)


_OUT_OF_MEMORY: Final = (
    "Out of Memory",
    "out of memory",
    "Not enough space to allocate",  # what older releases say alone
    "beyond max L1 size",
    "clash with L1 buffers",
)
_KINDS: Final = ("L1", "L1_SMALL", "DRAM", "TRACE")
_REMEDIES: Final = (
    "a smaller act_block_h_override makes a convolution take less L1",
    "slice a convolution in DRAM, or keep skip connections there",
    "bfloat8_b takes a little more than half of what bfloat16 takes",
    "deallocate activations that are not used any more; larger l1_small_size takes from L1",
)
#: What tt-metal says of a trace that is larger than the memory set aside for traces.
_TRACE: Final = re.compile(
    r"trace buffers of size (\d{1,18})B on .{0,80}?but only (\d{1,18})B is allocated for trace",
    re.S,
)


def ran_out_of_memory(text: str) -> bool:
    return any(phrase in text for phrase in _OUT_OF_MEMORY)


def trace_report(text: str, remedy: str = "open the device with trace_region_size=") -> str | None:
    """Return advice about a trace that did not fit.

    >>> trace_report("trace buffers of size 8192B on Device 1, but only 0B is allocated for trace")
    'the trace takes 8,192 bytes, and 0 are set aside: open the device with trace_region_size=8192'
    """
    found = _TRACE.search(text)
    if found is None:
        return None
    needed, there = map(int, found.groups())
    return f"the trace takes {needed:,} bytes, and {there:,} are set aside: {remedy}{needed}"


def memory_report(runtime: Runtime, devices: Iterable[Any]) -> str:
    kinds = getattr(runtime.ttnn, "BufferType", None)
    view_of = getattr(runtime.ttnn, "get_memory_view", None)
    lines = []
    for device, name in product(devices, _KINDS):
        kind = getattr(kinds, name, None)
        if kind is None or view_of is None:
            continue
        try:
            view = view_of(device, kind)
        except (RuntimeError, TypeError):
            continue
        used, total = view.total_bytes_allocated_per_bank, view.total_bytes_per_bank
        if total:
            free = view.largest_contiguous_bytes_free_per_bank
            banks = f"{used:,} of {total:,} bytes used in each of {view.num_banks} banks"
            lines.append(f"{name}: {banks}; the largest free block has {free:,}")
    return "\n".join([*lines, *(f"- {remedy}" for remedy in _REMEDIES)])


def ops_reports_since(since_s: float, environment: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return the ops CSVs written since a moment, oldest first."""
    home = environment.get("TT_METAL_PROFILER_DIR")
    if not home:
        home = str(Path(environment.get("TT_METAL_HOME") or cwd) / "generated" / "profiler")
    found = [
        (file.stat().st_mtime, file)
        for file in Path(home).rglob("ops_perf_results*.csv")
        if file.is_file()
    ]
    return [file for written_s, file in sorted(found) if written_s >= since_s]


# Scripts: commands that are measured as tests are, by what tt-lang or its simulator says of them.


class ScriptPass(Enum):
    """The purpose of running a script."""

    TTLANG = "ttlang"
    LINES = "lines"
    SIM = "sim"
    NONE = "none"


_PROFILED: Final = {"TT_METAL_DEVICE_PROFILER": "1", "TT_METAL_PROFILER_MID_RUN_DUMP": "1"}
#: The variables that each pass sets.
SCRIPT_VARIABLES: Final[Mapping[ScriptPass, Mapping[str, str]]] = {
    ScriptPass.TTLANG: {
        "TTLANG_PERF_DUMP": "1", "TT_METAL_DEVICE_PROFILER_NOC_EVENTS": "1", **_PROFILED,
    },
    ScriptPass.LINES: {"TTLANG_AUTO_PROFILE": "1", **_PROFILED},
    ScriptPass.SIM: {},
    ScriptPass.NONE: {},
}  # fmt: skip
#: What each prints, by its name in a log.
_SECTIONS: Final = {
    ScriptPass.TTLANG: ("perf_summaries", "PERF SUMMARY"),
    ScriptPass.LINES: ("auto_profiles", "AUTO-PROFILE REPORT"),
}


class Script(Struct, frozen=True):
    """A command, filed under ``test``, whose samples are ``runs`` processes."""

    test: str
    words: tuple[str, ...]
    kind: ScriptPass
    #: The command as its user types it after ``ttnn-perf run``.
    typed: tuple[str, ...]
    runs: int = 1
    facts: Mapping[str, Scalar] = {}


_DECORATORS: Final = frozenset({"operation", "kernel"})


def operations_in(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    """Return the tt-lang operations of a source, by their names."""
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))
    return {
        each.name: each
        for each in functions
        if any(called_name(mark) in _DECORATORS for mark in each.decorator_list)
    }


def called_name(node: ast.expr) -> str | None:
    """Return the last name of a call or a decorator."""
    if isinstance(node, ast.Call):
        return called_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


class ScriptError(Exception):
    """A script that failed, or printed nothing that could be measured."""


def measure_script(observer: Observer, script: Script) -> None:
    """Run a script in fresh processes, and take what they show.

    Raises:
        ScriptError: it failed, or its profile is not there.
    """
    observer.facts(**script.facts)
    ours = SCRIPT_VARIABLES[script.kind]
    variables = {n: v for n, v in os.environ.items() if not n.startswith("TTNN_PERF_")}
    variables |= {**ours, "PYTHONUNBUFFERED": "1"}
    place = observer.run.artifacts.absolute() / "captures" / ops_path(script.test).with_suffix("")
    place.parent.mkdir(parents=True, exist_ok=True)

    def run(capture: Path, *more: str) -> None:
        try:
            ending = run_shown((*script.words, *more), capture, environment=variables)
        except OSError as error:
            message = f"{script.words[0]} cannot be started: {error.strerror}"
            raise ScriptError(message) from error
        if ending.code:
            message = f"{script.test.partition('::')[0]} {ending}"
            raise ScriptError(message)

    if script.kind is ScriptPass.NONE:
        for number in range(script.runs + 1):
            # The first one fills caches, as that of kernels.
            with observer.region(WALL_TIME) if number else nullcontext():
                run(place.with_name(f"{place.name}.txt"))
        return
    if script.kind is ScriptPass.LINES:
        observer.asked = None  # it is known that nothing of it is gated
    for number in range(1, script.runs + 1):
        log = place.with_name(f"{place.name}-{number}.txt")
        if script.kind is ScriptPass.SIM:
            trace = log.with_suffix(".jsonl")
            run(log, "--trace", str(trace))
            if not trace.exists() or not trace.stat().st_size:
                message = "the simulator traced nothing: no @ttl.operation was called"
                raise ScriptError(message)
            observer.attach(trace)
            continue
        folder = observer.run.lock_folder or lock_folder()
        with ttlang_lock(folder, print):
            logs = Path(variables.get("TT_METAL_HOME", "")) / TTLANG_LOGS
            for stale in logs.glob("noc_trace_*.json") if "TT_METAL_HOME" in variables else ():
                stale.unlink()  # of earlier runs: tt-lang would sum them up as well
            run(log)
        _take_log(observer, script.kind, log)


def _take_log(observer: Observer, kind: ScriptPass, file: Path) -> None:
    text = file.read_text(encoding="utf-8", errors="replace")
    log = wings.captures.printed_artifact(text).kernels
    name, section = _SECTIONS[kind]
    if log is None or not getattr(log, name):
        said = f": {log.problems[0].text}" if log and log.problems else ""
        message = f"the output has no {section}{said}; see {os.path.relpath(file)}"
        raise ScriptError(message)
    for summary in log.perf_summaries[:1]:
        chip = {"clock_mhz": summary.clock_mhz, "max_compute_cores": summary.max_compute_cores}
        observer.facts(**{name: value for name, value in chip.items() if value is not None})
    observer.read_output(text, file)
