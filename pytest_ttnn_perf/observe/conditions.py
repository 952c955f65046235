"""How a test takes its times: what two versions must have in common to be compared."""

from __future__ import annotations

import sys
import warnings
from dataclasses import field, replace
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.records.observation import Conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ttnn_perf.measure.timing import Timings, Workload
    from pytest_ttnn_perf.observe.instruments import Plan


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Measured:
    conditions: Conditions
    workload: Workload
    timings: Timings
    by_host: bool
    wait_for_all: Callable[[], object] | None


@dataclass(slots=True)
class ConditionLog:
    """Keeps the conditions of one test.

    In the end models are called again with as many new inputs as there are ``tries``; ``nonce``
    decides which.
    """

    tries: int
    nonce: int = 0
    references: dict[str, str] = field(default_factory=dict)
    _measured: dict[str, _Measured] = field(default_factory=dict)
    _last: str = ""
    _returned: str | None = None

    def add(
        self,
        metric: str,
        workload: Workload,
        plan: Plan,
        timings: Timings,
        *,
        by_host: bool,
        wait_for_all: Callable[[], object] | None = None,
    ) -> None:
        """Keep how a time is taken; ``by_host``: by its clock, and no simulator's.

        ``wait_for_all`` waits for all devices that are open.
        """
        from pytest_ttnn_perf.measure.probe import content_of, shapes_of

        conditions = Conditions(
            metric,
            plan.warmup,
            plan.iterations,
            name_of(workload.clock),
            depth=plan.depth,
            sync=_sync_name(workload),
            inputs=_unless_it_raises(shapes_of, workload) or (),
            content=_unless_it_raises(content_of, (workload.args, workload.kwargs)),
        )
        self._measured[metric] = _Measured(conditions, workload, timings, by_host, wait_for_all)
        self._last, self._returned = metric, None

    def returns(self, result: object) -> None:
        """Keep what the model that was measured last returned, as a sketch: it may be large."""
        from pytest_ttnn_perf.measure.probe import floats_of, output_digest
        from pytest_ttnn_perf.measure.sketch import sketch_of

        self._returned = _unless_it_raises(output_digest, result) if self.tries else None
        if self._returned is not None:
            sketch = _unless_it_raises(lambda: sketch_of(floats_of(result)))
            self._change(returned=sketch or ())

    def refer(self, name: str, expected: object, actual: object) -> None:
        """Keep what an output is compared with, and whether it is the one that was measured."""
        from pytest_ttnn_perf.measure.probe import content_of, output_digest

        checks = self._returned is not None
        if checks and _unless_it_raises(output_digest, actual) == self._returned:
            self._change(checked=True)
        content = _unless_it_raises(content_of, expected)
        if content is not None:
            self.references[name] = content

    def _change(self, **changes: Any) -> None:
        measured = self._measured[self._last]
        changed = replace(measured.conditions, **changes)
        self._measured[self._last] = replace(measured, conditions=changed)

    def finish(self, *, passed: bool) -> Mapping[str, Conditions]:
        """Return the conditions of all times, and probe the models of a test that passed.

        Only now: one that keeps something from call to call must not be disturbed by us.
        """
        if not (self.tries and passed):
            why = None if self.tries else "it is not called again in the pass of a profiler"
            return {
                name: replace(measured.conditions, unknown=why)
                for name, measured in self._measured.items()
            }
        return {
            name: _probed(measured, self.tries, self.nonce)
            for name, measured in self._measured.items()
        }


def _unless_it_raises(function: Callable[..., T], *given: object) -> T | None:
    """Return what is told of tensors; None where they cannot be read, as if nobody had asked.

    A test that passes without us passes with us.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*given)
    except Exception:  # noqa: BLE001 (tensors of others, on devices, which may be gone)
        return None


def _probed(measured: _Measured, tries: int, nonce: int) -> Conditions:
    from pytest_ttnn_perf.measure.probe import probe

    if not measured.timings.samples_ns:
        return replace(measured.conditions, unknown="it has no samples")
    try:
        found = probe(
            measured.workload,
            measured.timings.samples_ns,
            by_host=measured.by_host,
            tries=tries,
            nonce=nonce,
            depth=measured.conditions.depth,
            wait_for_all=measured.wait_for_all,
        )
    except Exception as error:  # noqa: BLE001 (a model that is called as nobody called it before)
        why = f"another call raised {type(error).__name__}: {text_of(error)}"[:200]
        return replace(measured.conditions, unknown=why)
    return replace(measured.conditions, **found._asdict())


def _sync_name(workload: Workload) -> str | None:
    """Return what a model is waited for with; with TTNN, also what that calls."""
    if workload.sync is None:
        return None
    waits = getattr(sys.modules.get("ttnn"), "synchronize_device", None)
    return " ".join(name_of(one) for one in (workload.sync, waits) if one is not None)


def name_of(function: Any) -> str:
    """Return the name of a function with a hash of its code: another code is another function.

    >>> name_of(len)
    'builtins.len'
    """
    if isinstance(function, partial):
        return name_of(function.func)
    if isinstance(function, MethodType):
        code = getattr(function.__func__, "__code__", None)
        replaced = _replaced(type(function.__self__), code.co_names if code else ())
        return " ".join((name_of(function.__func__), *replaced))
    if isinstance(function, BuiltinFunctionType):
        return f"{function.__module__}.{function.__qualname__}"
    if isinstance(function, FunctionType):
        found = blake2b(digest_size=6)
        _hash_code(found, function.__code__)
        return f"{function.__module__}.{function.__qualname__}#{found.hexdigest()}"
    called = vars(type(function)).get("__call__")
    kind = f"{type(function).__module__}.{type(function).__qualname__}"
    return name_of(called) if isinstance(called, FunctionType) else kind


def _replaced(kind: type, names: Iterable[str], seen: frozenset[str] = frozenset()) -> list[str]:
    """Name the methods that a method calls, and those call, which are not of their class's module.

    Somebody has put them there: what is written in a class is in its module.
    """
    found = []
    for name in sorted({*names} - seen):
        owner = next((each for each in kind.__mro__ if name in vars(each)), None)
        called = vars(owner)[name] if owner is not None else None
        if isinstance(called, FunctionType):
            seen |= {name}
            found += _replaced(kind, called.__code__.co_names, seen)
            if owner is not None and called.__module__ != owner.__module__:
                found.append(f"{name}={name_of(called)}")
    return found


def _hash_code(into: Any, code: CodeType) -> None:
    """Hash what a function does, wherever it is written."""
    into.update(code.co_code)
    into.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(into, constant)
        else:
            into.update(_text_of_constant(constant).encode())


def _text_of_constant(constant: object) -> str:
    """Return a constant of a function as text: sets have another order in each process."""
    if isinstance(constant, frozenset):
        return repr(sorted(map(_text_of_constant, constant)))
    if isinstance(constant, tuple):
        return repr(tuple(map(_text_of_constant, constant)))
    return repr(constant)
