"""Finds the helpers that existing tests measure with, and has calls of them observed.

They are known by their names, whatever module defines them: at least a dozen modules define a
``comp_pcc`` of their own. What observes them is loaded when the first one is found.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pytest_ttnn_perf.observe.helpers.patches import Call, Observed
    from pytest_ttnn_perf.observe.recorder import Recorder


#: The names of helpers, by the module of this package that observes them. Of a class, its methods.
#: Tests end in this order: what a benchmark tells may be what others have told better.
FAMILIES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "device_perf": dict.fromkeys(
        (
            "run_device_profiler", "post_process_ops_log", "post_process_ops_log_detailed",
            "check_device_perf",
        ),
        (),
    ),
    "pcc_helpers": dict.fromkeys(
        (
            "comp_pcc", "compute_pcc", "calculate_pcc", "get_pcc", "comp_allclose_and_pcc",
            "assert_with_pcc", "assert_pcc", "check_with_pcc", "check_pcc", "verify_pcc",
            "check_with_pcc_without_tensor_printout", "assert_numeric_metrics",
        ),
        (),
    ),
    "realtime": dict.fromkeys(
        ("profile_realtime_program", "profile_realtime_program_merged",
         "assert_op_duration_merged"),
        (),
    ),
    "benchmark_data": {
        "BenchmarkData": ("add_measurement", "save_partial_run_json"),
        "BenchmarkProfiler": ("start", "end"),
    },
}  # fmt: skip
_FAMILY_OF: Final = {name: family for family, names in FAMILIES.items() for name in names}
_OURS: Final = "pytest_ttnn_perf"


class Family(Protocol):
    """Observes the calls of one family of helpers in one test."""

    def __init__(self, recorder: Recorder) -> None: ...

    def handle(self, name: str, call: Call) -> Any:
        """Make a call of the helper ``name``, and record what it tells."""

    def finish(self) -> None:
        """Record what is known only now that the test has ended."""


class HelperFinder:
    """Has helpers observed while a test runs; first on ``sys.meta_path`` meanwhile.

    A test may import a helper in its body: a module is looked at once it is loaded, and before each
    test all modules that are new.
    """

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._families: dict[str, Family] = {}
        self._observed: dict[int, Observed] = {}
        self._seen: set[str] = set()
        self._modules = 0

    def begin(self, recorder: Recorder) -> None:
        """Observe what a test calls from now on."""
        self._recorder, self._families = recorder, {}
        if len(sys.modules) != self._modules:  # most tests import nothing
            names = sys.modules.keys() - self._seen
            self._seen |= names
            self._look(module for name in names if (module := sys.modules.get(name)) is not None)
            self._modules = len(sys.modules)
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Record what is known at the end of a test, and observe nothing until the next."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        families, self._families = self._families, {}
        self._recorder = None
        for name in FAMILIES:
            if name in families:
                families[name].finish()

    def undo(self) -> None:
        """Make every helper what it was."""
        for observed in self._observed.values():
            observed.undo()
        self._observed.clear()
        self._seen.clear()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as everyone else does, and look at it once it is loaded."""
        if fullname.partition(".")[0] == _OURS:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                break
        else:
            return None
        if hasattr(spec.loader, "exec_module"):
            from pytest_ttnn_perf.device.ttnn import Reporting

            spec.loader = Reporting(spec.loader, self._look_at)  # type: ignore[arg-type]
        return spec

    def _look_at(self, module: ModuleType) -> None:
        self._seen.add(module.__name__)
        self._look((module,))

    def _look(self, modules: Iterable[ModuleType]) -> None:
        for module in modules:
            defined = getattr(module, "__dict__", None)
            if not isinstance(defined, dict):  # some put an object of their own in their place
                continue
            for name in _FAMILY_OF:
                if name in defined:
                    self._observe(name, defined[name])

    def _observe(self, name: str, helper: Any) -> None:
        methods = FAMILIES[_FAMILY_OF[name]][name]
        if methods and isinstance(helper, type):
            for method in methods:
                self._observe_function(name, f"{name}.{method}", vars(helper).get(method))
        elif not methods:
            self._observe_function(name, name, helper)

    def _observe_function(self, name: str, called: str, function: Any) -> None:
        from pytest_ttnn_perf.observe.helpers.patches import can_be_observed, observe_calls

        if id(function) in self._observed or not can_be_observed(function):
            return
        family = _FAMILY_OF[name]

        def handle(call: Call) -> Any:
            __tracebackhide__ = True
            recorder = self._recorder
            if recorder is None:
                return call.make()
            return self._family(family, recorder).handle(called, call)

        self._observed[id(function)] = observe_calls(function, handle)

    def _family(self, name: str, recorder: Recorder) -> Family:
        if name not in self._families:
            module = importlib.import_module(f"{__package__}.{name}")
            self._families[name] = module.FAMILY(recorder)
        return self._families[name]
