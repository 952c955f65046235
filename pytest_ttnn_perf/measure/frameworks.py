"""Frameworks around TTNN: compile options of tt-xla, and pipelines of TT-CNN."""

from __future__ import annotations

import functools
import os
import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.machine.ttnn import plain, when_imported
from pytest_ttnn_perf.measure.timing import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from pytest_ttnn_perf.core.hardware import Scalar


# Compile options of tt-xla. Neither torch_xla nor jax is imported.
#
# Compile options of torch are set for a process; those of jax are given with each function. The
# runtime reads variables of its own when it opens the device.

#: ``torch_xla.runtime.set_device_type("TT")`` sets it.
_DEVICE: Final = "PJRT_DEVICE"
_TRACE_REGION: Final = "TT_RUNTIME_TRACE_REGION_SIZE"
_PROGRAM_CACHE: Final = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"
#: Where torch_xla hands options over, whichever of its functions they were given to.
_SET_OPTIONS: Final = "_set_custom_compile_options"
#: What options are when nobody says: given or not, the same setting is the same.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "optimization_level": 0,
    "enable_trace": False,
    "enable_bfp8_conversion": False,
}
#: What older releases had in place of levels.
_LEVEL, _FORMER_LEVEL = "optimization_level", "enable_optimizer"
#: How the names of options begin that say what is written, and where to: no model is faster by it.
_WRITING: Final = ("export_", "dump_", "ttnn_perf_metrics_", "dry_run")
_WORDS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class Compiler:
    """The compile options of this process and of the running test."""

    def __init__(self) -> None:
        self._of_torch: dict[str, Scalar] | None = None
        self._of_jax: dict[str, Scalar] | None = None
        self._dtype: str | None = None
        self._input_dtype: str | None = None
        #: Variables of the runtime as they were when torch_xla was imported.
        self._at_import: dict[str, str | None] = {}

    def observe(self) -> None:
        when_imported("torch_xla", self._observe_torch)
        when_imported("jax", self._observe_jax)

    def begin_test(self) -> None:
        self._of_jax = self._dtype = self._input_dtype = None

    def called(self, model: object, inputs: Iterable[object]) -> None:
        """Take notice of the formats of a torch module and its inputs."""
        module = getattr(getattr(sys.modules.get("torch"), "nn", None), "Module", None)
        if self._dtype is None and module is not None and isinstance(model, module):
            first: Any = next(iter(model.parameters()), None)
            self._dtype = None if first is None else _dtype_of(first)
            floats = [dtype for each in inputs if "float" in (dtype := _dtype_of(each))]
            others = (dtype for dtype in floats if self._dtype and dtype != self._dtype)
            self._input_dtype = next(others, None)

    @property
    def set_late(self) -> str:
        """The variables that were changed after the import of torch_xla."""
        late = (name for name, was in self._at_import.items() if os.environ.get(name) != was)
        return ", ".join(late)

    def explanation(self, error: str) -> str | None:
        """Say which variable makes room for a trace that did not fit."""
        if not self.configuration:
            return None
        from pytest_ttnn_perf.measure.profilers import trace_report

        return trace_report(error, f"before torch_xla is imported, set {_TRACE_REGION}=")

    @property
    def configuration(self) -> Mapping[str, Scalar]:
        options = self._of_jax if self._of_jax is not None else self._of_torch
        if options is None:
            if os.environ.get(_DEVICE) != "TT" or "torch_xla" not in sys.modules:
                return {}
            options = {}
        known = {**_DEFAULTS, **options}
        if _FORMER_LEVEL in options and _LEVEL not in options:
            del known[_LEVEL]
        region = os.environ.get(_TRACE_REGION)
        known[_TRACE_REGION] = None if region is None else _value(region)
        # The runtime turns the cache off for this text alone.
        known[_PROGRAM_CACHE] = 0 if os.environ.get(_PROGRAM_CACHE) == "0" else None
        dtypes = {"torch_dtype": self._dtype, "torch_input_dtype": self._input_dtype}
        return known | {name: dtype for name, dtype in dtypes.items() if dtype is not None}

    def _observe_torch(self, torch_xla: ModuleType) -> None:
        self._at_import = {name: os.environ.get(name) for name in (_TRACE_REGION, _PROGRAM_CACHE)}

        def notice(options: Mapping[str, Any], *_: Any, **__: Any) -> None:
            self._of_torch = _deciding(options)

        _after_calls(getattr(torch_xla, "_XLAC", None), _SET_OPTIONS, notice)

    def _observe_jax(self, jax: ModuleType) -> None:
        def notice(*_: Any, compiler_options: Mapping[str, Any] | None = None, **__: Any) -> None:
            if compiler_options:
                self._of_jax = _deciding(compiler_options)

        _after_calls(jax, "jit", notice)


def _dtype_of(tensor: object) -> str:
    return str(getattr(tensor, "dtype", "")).rpartition(".")[2]


def _after_calls(owner: Any, name: str, notice: Callable[..., None]) -> None:
    """Have ``notice`` called after each call of a function, with its arguments."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def noticed(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        notice(*args, **kwargs)
        return result

    setattr(owner, name, noticed)


def _deciding(options: Mapping[str, Any]) -> dict[str, Scalar]:
    return {
        str(name): _value(value)
        for name, value in options.items()
        if not str(name).startswith(_WRITING)
    }


def _value(value: Any) -> Scalar:
    """Return the value of an option, however it is spelt.

    >>> _value("true"), _value(True), _value("1"), _value(1), _value("hifi4")
    (True, True, 1, 1, 'hifi4')
    """
    if not isinstance(value, str):
        return plain(value)
    return int(value) if value.isdecimal() else _WORDS.get(value.lower(), value)


# Pipelines of TT-CNN.

_USED: Final = ("compile", "enqueue", "pop_all")
_PREALLOCATE: Final = "preallocate_output_tensors_on_host"
#: Executors that replay no trace; those that do have its id, or say so in their names.
_UNTRACED: Final = frozenset({"ModelExecutor", "MultiCQModelOverlappedInputExecutor"})
#: What ``PipelineConfig`` calls its settings; the last has had another name before.
_TRACE, _QUEUES, _SEPARATE = (
    "use_trace",
    "num_command_queues",
    "all_transfers_on_separate_command_queue",
)
_FORMER_SEPARATE: Final = "separate_io_queue"
#: How executors name the constants for their command queues, and the one that computes.
_QUEUE, _QUEUE_OF_OPS = "CQ_", "CQ_OPS"


class Pipeline:
    """A pipeline with its inputs and its settings as facts."""

    def __init__(self, pipeline: Any, inputs: list[Any], facts: dict[str, Scalar]) -> None:
        self.pipeline = pipeline
        self.inputs = inputs
        self.facts = facts
        #: The least inputs of a round: with separate queues, two overlap.
        self._fewest = 1 if facts.get(_SEPARATE) is False else 2

    @property
    def is_compiled(self) -> bool:
        """True if compiled: once more would leave the first trace behind."""
        executor = getattr(self.pipeline, "executor", None)
        return (
            getattr(self.pipeline, "output_schema", None) is not None
            or getattr(executor, "output_schema", None) is not None
            or getattr(executor, "trace_id", None) is not None
        )

    def preallocate(self) -> None:
        getattr(self.pipeline, _PREALLOCATE)(len(self.inputs))

    def workload(self, sync: Callable[[], object] | None) -> Workload:
        few = self.inputs[: self._fewest]
        part = None if len(few) == len(self.inputs) else self._round(few, sync)
        return self._round(self.inputs, sync, part)

    def serve(self, make_room: Callable[[], None]) -> list[Any]:
        if _is_preallocated(self.pipeline):  # the next few would overwrite them
            return _serve(self.pipeline, self.inputs)
        size, count = self._fewest, len(self.inputs)
        outputs: list[Any] = []
        starts = range(0, max(count - size + 1, 1), size)
        for start in starts:  # the last takes what is left
            stop = count if start == starts[-1] else start + size
            outputs += _serve(self.pipeline, self.inputs[start:stop])
            make_room()
        return outputs

    def _round(
        self, inputs: list[Any], sync: Callable[[], object] | None, part: Workload | None = None
    ) -> Workload:
        count = len(inputs)
        return Workload(
            functools.partial(_serve, self.pipeline),
            (inputs,),
            sync=sync,
            # As much slower as there are inputs: a round takes the time of one.
            clock=lambda: perf_counter_ns() / count,
            inputs=count,
            part=part,
        )


def _serve(pipeline: Any, inputs: list[Any]) -> list[Any]:
    pipeline.enqueue(inputs)
    outputs: list[Any] = pipeline.pop_all()
    return outputs


def _is_preallocated(pipeline: Any) -> bool:
    return bool(getattr(pipeline, "preallocated_output_tensors", False))


def pipeline_of(
    pipeline: Any, inputs: Any, config: Any, *, preallocate: bool, cleanup: bool
) -> Pipeline:
    """Return a pipeline with its inputs and its configuration as facts.

    Raises:
        UsageError: it is no pipeline, has no inputs, or is not what ``config`` says.
    """
    needed = [*_USED, *([_PREALLOCATE] if preallocate else []), *(["cleanup"] if cleanup else [])]
    lacking = [name for name in needed if not callable(getattr(pipeline, name, None))]
    if lacking or isinstance(pipeline, type):
        lacks = f" without {', '.join(lacking)}()" if lacking else ""
        message = f"measure_pipeline takes a pipeline of TT-CNN: found {_name(pipeline)}{lacks}"
        raise UsageError(message)
    if not isinstance(inputs, (list, tuple)) or not inputs:
        found = "none" if isinstance(inputs, (list, tuple)) else _name(inputs)
        message = f"measure_pipeline takes a list of inputs on the host, found {found}"
        raise UsageError(message)
    executor = getattr(pipeline, "executor", None)
    stated, observed = _stated(config), _observed(executor)
    for name, value in stated.items():
        seen = observed.get(name, value)
        if seen != value:
            message = f"config has {name}={value}, and {_name(executor)} has {name}={seen}"
            raise UsageError(f"{message}: pass the one that the pipeline was made from")
    facts = {
        **stated,
        **observed,
        "pipeline_inputs": len(inputs),
        "preallocated_outputs": preallocate or _is_preallocated(pipeline),
    }
    return Pipeline(pipeline, list(inputs), facts)


def _stated(config: Any) -> dict[str, Scalar]:
    if config is None:
        return {}
    names = {_TRACE: _TRACE, _QUEUES: _QUEUES, _FORMER_SEPARATE: _SEPARATE, _SEPARATE: _SEPARATE}
    found = {known: getattr(config, name) for name, known in names.items() if hasattr(config, name)}
    if not found:
        message = f"config is a PipelineConfig, with {_TRACE} and {_QUEUES}: found {_name(config)}"
        raise UsageError(message)
    return found


def _observed(executor: Any) -> dict[str, Scalar]:
    if executor is None:
        return {}
    found: dict[str, Scalar] = {}
    classes = {each.__name__ for each in type(executor).__mro__}
    if hasattr(executor, "trace_id") or any("Traced" in name for name in classes):
        found[_TRACE] = True
    elif classes & _UNTRACED:
        found[_TRACE] = False
    queues = {
        name: getattr(executor, name)
        for name in dir(type(executor))
        if name.startswith(_QUEUE) and isinstance(getattr(executor, name), int)
    }
    if not queues:
        if isinstance(getattr(executor, "cq_id", None), int):  # it has one for all
            found |= {_QUEUES: 1, _SEPARATE: False}
        return found
    found[_QUEUES] = len(set(queues.values()))
    computing = {queue for name, queue in queues.items() if name.startswith(_QUEUE_OF_OPS)}
    if computing and callable(getattr(executor, "get_read_cq", None)):
        found[_SEPARATE] = executor.get_read_cq() not in computing
    return found


def _name(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else type(value).__name__
