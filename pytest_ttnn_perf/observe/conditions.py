"""How a test takes its times: what two versions must have in common to be compared."""

from __future__ import annotations

import sys
from dataclasses import field, replace
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.records.observation import Conditions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.measure.timing import Timings, Workload
    from pytest_ttnn_perf.observe.instruments import Plan


@dataclass(frozen=True, slots=True)
class _Measured:
    conditions: Conditions
    workload: Workload
    timings: Timings
    by_host: bool


@dataclass(slots=True)
class ConditionLog:
    """Keeps the conditions of one test; ``probes``: models are called again in the end."""

    probes: bool
    references: dict[str, str] = field(default_factory=dict)
    _measured: dict[str, _Measured] = field(default_factory=dict)

    def add(
        self, metric: str, workload: Workload, plan: Plan, timings: Timings, *, by_host: bool
    ) -> None:
        """Keep how a time is taken; ``by_host``: by its clock, and no simulator's."""
        from pytest_ttnn_perf.measure.probe import content_of, shapes_of

        conditions = Conditions(
            metric,
            plan.warmup,
            plan.iterations,
            name_of(workload.clock),
            depth=plan.depth,
            sync=_sync_name(workload),
            inputs=shapes_of(workload),
            content=content_of((workload.args, workload.kwargs)),
        )
        self._measured[metric] = _Measured(conditions, workload, timings, by_host)

    def refer(self, name: str, expected: object) -> None:
        """Keep what an output is compared with."""
        from pytest_ttnn_perf.measure.probe import content_of

        content = content_of(expected)
        if content is not None:
            self.references[name] = content

    def finish(self, *, passed: bool) -> Mapping[str, Conditions]:
        """Return the conditions of all times, and probe the models of a test that passed.

        Only now: one that keeps something from call to call must not be disturbed by us.
        """
        if not (self.probes and passed):
            return {name: measured.conditions for name, measured in self._measured.items()}
        return {name: _probed(measured) for name, measured in self._measured.items()}


def _probed(measured: _Measured) -> Conditions:
    from pytest_ttnn_perf.measure.probe import probe

    if not measured.timings.samples_ns:
        return replace(measured.conditions, unknown="it has no samples")
    try:
        found = probe(measured.workload, measured.timings.samples_ns, by_host=measured.by_host)
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
        return name_of(function.__func__)
    if isinstance(function, BuiltinFunctionType):
        return f"{function.__module__}.{function.__qualname__}"
    if isinstance(function, FunctionType):
        found = blake2b(digest_size=6)
        _hash_code(found, function.__code__)
        return f"{function.__module__}.{function.__qualname__}#{found.hexdigest()}"
    called = vars(type(function)).get("__call__")
    kind = f"{type(function).__module__}.{type(function).__qualname__}"
    return name_of(called) if isinstance(called, FunctionType) else kind


def _hash_code(into: Any, code: CodeType) -> None:
    """Hash what a function does, wherever it is written."""
    into.update(code.co_code)
    into.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _hash_code(into, constant)
        else:
            into.update(repr(constant).encode())
