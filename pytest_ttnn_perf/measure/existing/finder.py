"""Finds the helpers that existing tests measure with, and has calls of them observed.

They are known by their names, whatever module defines them: at least a dozen modules define a
``comp_pcc`` of their own. What observes them is loaded when the first one is found.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Handler = Callable[["Call"], Any]
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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
        """Make the call; with other values for some arguments if they are given."""
        __tracebackhide__ = True
        if not instead:
            return self.original(*self.args, **self.kwargs)
        bound = self.signature.bind(*self.args, **self.kwargs)
        bound.arguments.update(instead)
        return self.original(*bound.args, **bound.kwargs)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by their names, defaults included; none where they do not fit."""
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
        __tracebackhide__ = True
        ttnn_perf_observed = {place!r}
        return ttnn_perf_observed(*ttnn_perf_args, **ttnn_perf_kwargs)
        {seen}
    return handing_on
"""
_NO_PLAIN_CALL: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _code_for(code: CodeType, handler: Callable[..., Any]) -> CodeType:
    """Return code that hands calls on, in the place of that of a function."""
    seen = ", ".join(code.co_freevars)
    source = _TEMPLATE.format(seen=seen, place=_PLACE)
    module = compile(source, code.co_filename, "exec")
    around = next(each for each in module.co_consts if isinstance(each, CodeType))
    own = next(each for each in around.co_consts if isinstance(each, CodeType))
    return own.replace(
        co_consts=tuple(handler if each == _PLACE else each for each in own.co_consts),
        co_name=code.co_name,
        co_firstlineno=code.co_firstlineno,
    )


def can_be_observed(function: object) -> bool:
    """Tell whether something is a function of Python whose calls end when they return."""
    return isinstance(function, FunctionType) and not function.__code__.co_flags & _NO_PLAIN_CALL


class Observed(Struct):
    """A function whose calls are observed, until that is undone."""

    function: FunctionType
    code: CodeType
    has_own_signature: bool

    def undo(self) -> None:
        """Make the function what it was."""
        self.function.__code__ = self.code
        if not self.has_own_signature:
            del self.function.__signature__  # type: ignore[attr-defined]


def observe_calls(function: FunctionType, handle: Handler) -> Observed:
    """Have ``handle`` make every call of a function from now on."""
    code = function.__code__
    original = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    original.__qualname__ = function.__qualname__
    original.__dict__.update(function.__dict__)

    signature = inspect.signature(function)

    def hand_on(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return handle(Call(original, signature, function.__globals__, args, kwargs))

    observed = Observed(function, code, has_own_signature="__signature__" in vars(function))
    if not observed.has_own_signature:
        function.__signature__ = signature  # type: ignore[attr-defined]
    function.__code__ = _code_for(code, hand_on)
    return observed


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
#: The module and the class that follow the calls of a family.
_MADE_BY: Final = {
    "device_perf": ("profiles", "DevicePerfCalls"),
    "realtime": ("profiles", "RealtimeCalls"),
    "benchmark_data": ("benchmark_data", "BenchmarkCalls"),
    "pcc_helpers": ("pcc_helpers", "PccCalls"),
}
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
            from pytest_ttnn_perf.machine.ttnn import Reporting

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
            module, made_by = _MADE_BY[name]
            family = getattr(importlib.import_module(f"{__package__}.{module}"), made_by)
            self._families[name] = family(recorder)
        return self._families[name]
