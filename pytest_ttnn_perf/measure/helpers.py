"""Finds helpers of existing tests, and has their calls observed.

They are known by their names, whatever module defines them: at least a dozen modules define a
``comp_pcc`` of their own. What observes them is loaded when the first one is found.
"""

from __future__ import annotations

import os
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.machine.ttnn import ImportWatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from pytest_ttnn_perf.measure.helper_families import Call, Family
    from pytest_ttnn_perf.measure.recorder import Recorder


_PCC: Final = "PccCalls"
#: The names of helpers, by the class of ``helper_families`` that follows their calls. Tests end
#: in this order: what a benchmark reports may be what others have measured better.
_FAMILIES: Final = {
    "DevicePerfCalls": (
        "run_device_profiler", "post_process_ops_log", "post_process_ops_log_detailed",
        "check_device_perf", "run_device_perf_test",
    ),
    _PCC: (
        "comp_pcc", "compute_pcc", "calculate_pcc", "get_pcc", "comp_allclose_and_pcc",
        "assert_with_pcc", "assert_pcc", "check_with_pcc", "check_pcc", "verify_pcc",
        "check_with_pcc_without_tensor_printout", "assert_numeric_metrics",
        "verify_conv2d_from_config", "verify_maxpool2d_from_config",
    ),
    "RealtimeCalls": (
        "profile_realtime_program", "profile_realtime_program_merged", "assert_op_duration_merged",
    ),
    "BenchmarkCalls": (
        "BenchmarkData.add_measurement", "BenchmarkData.save_partial_run_json",
        "BenchmarkProfiler.start", "BenchmarkProfiler.end", "Profiler.start", "Profiler.end",
    ),
}  # fmt: skip
_HELPERS: Final = {name: family for family, names in _FAMILIES.items() for name in names}


class HelperFinder:
    """Has helpers observed while a test runs.

    A test may import a helper in its body: a module is looked at once it is loaded, and before each
    test all modules that are new.
    """

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._families: dict[str, Family] = {}
        #: What undoes the observation of a function, by its id.
        self._undo: dict[int, Callable[[], None]] = {}
        self._seen: set[str] = set()
        self._modules = 0
        self._imports = ImportWatch(self._look_at)

    def begin(self, recorder: Recorder) -> None:
        self._recorder, self._families = recorder, {}
        if len(sys.modules) != self._modules:  # most tests import nothing
            names = sys.modules.keys() - self._seen
            self._seen |= names
            for name in names:
                self._look(sys.modules.get(name))
            self._modules = len(sys.modules)
        sys.meta_path.insert(0, self._imports)

    def end(self) -> None:
        if self._imports in sys.meta_path:
            sys.meta_path.remove(self._imports)
        families, self._families = self._families, {}
        self._recorder = None
        for name in _FAMILIES:
            if name in families:
                families[name].finish()

    def undo(self) -> None:
        for undo in self._undo.values():
            undo()
        self._undo.clear()
        self._seen.clear()

    def _look_at(self, module: ModuleType) -> None:
        self._seen.add(module.__name__)
        self._look(module)

    def _look(self, module: ModuleType | None) -> None:
        defined = getattr(module, "__dict__", None)
        if not isinstance(defined, dict):  # some put an object of their own in their place
            return
        for helper in _HELPERS:
            name, _, method = helper.partition(".")
            found = defined.get(name)
            if method:
                found = vars(found).get(method) if isinstance(found, type) else None
            if found is None or id(found) in self._undo:
                continue
            from pytest_ttnn_perf.measure.helper_families import can_be_observed, observe_calls

            if can_be_observed(found):
                self._undo[id(found)] = observe_calls(found, partial(self._handle, helper))

    def _handle(self, helper: str, call: Call) -> Any:
        if self._recorder is None:
            return call.make()
        name = _HELPERS[helper]
        # A functional test checks its PCC, too: that alone is no measurement.
        self._recorder.recognised |= name != _PCC
        if name not in self._families:
            from pytest_ttnn_perf.measure import helper_families

            self._families[name] = getattr(helper_families, name)(self._recorder)
        return self._families[name].handle(helper, call)


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
        global _watching, _hooked  # noqa: PLW0603 (a process has one set of hooks)
        self._recorder, _watching = recorder, self
        if not _hooked:
            _hooked = True
            sys.addaudithook(_hook)

    def end(self) -> None:
        global _watching  # noqa: PLW0603
        self._recorder = _watching = None

    @property
    def must_not_profile(self) -> bool:
        """True if a profiled process would harm or hang here."""
        return self._profiled or self._beside_others or self._has_opened_device()

    def stop(self) -> None:
        """End the running test: another worker is going to run it."""
        self.stopped = True
        raise RunsApart

    def notice(self, event: str, arguments: tuple[Any, ...]) -> None:
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
