"""Pipelines of TT-CNN: known by their attributes, never imported.

A pipeline takes inputs on the host and gives back outputs on the host. Its executor decides whether
a trace is replayed, and which command queues carry inputs, ops and outputs.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.measure.timing import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_ttnn_perf.core.hardware import Scalar

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


class Pipeline(Struct, frozen=True):
    """A pipeline with the inputs that it is measured with."""

    pipeline: Any
    inputs: list[Any]
    facts: Mapping[str, Scalar]

    @property
    def is_compiled(self) -> bool:
        """True if compiled: once more would leave the first trace behind."""
        executor = getattr(self.pipeline, "executor", None)
        known = (
            getattr(self.pipeline, "output_schema", None),
            getattr(executor, "output_schema", None),
            getattr(executor, "trace_id", None),
        )
        return any(each is not None for each in known)

    def preallocate(self) -> None:
        """Make room for the outputs on the host."""
        getattr(self.pipeline, _PREALLOCATE)(len(self.inputs))

    def workload(self, sync: Callable[[], object] | None) -> Workload:
        """Return a round over all inputs, and over few for profilers."""
        whole, few = self._round(self.inputs, sync), self.inputs[: self._fewest]
        if len(few) == len(self.inputs):
            return whole
        return replace(whole, part=self._round(few, sync))

    def serve(self, make_room: Callable[[], None]) -> list[Any]:
        """Return the outputs of all inputs, few at a time."""
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

    @property
    def _fewest(self) -> int:
        """The least inputs of a round: with separate queues, two overlap."""
        return 1 if self.facts.get(_SEPARATE) is False else 2

    def _round(self, inputs: list[Any], sync: Callable[[], object] | None) -> Workload:
        count = len(inputs)
        return Workload(
            partial(_serve, self.pipeline),
            (inputs,),
            sync=sync,
            # As much slower as there are inputs: a round takes the time of one.
            clock=lambda: perf_counter_ns() / count,
            inputs=count,
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
    """Return the settings that an executor of TT-CNN shows."""
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
