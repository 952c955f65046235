"""Pipelines of TT-CNN, as far as they are used here: known by what they offer, never imported.

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
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.core.hardware import Scalar

_USED: Final = ("compile", "enqueue", "pop_all")
_PREALLOCATE: Final = "preallocate_output_tensors_on_host"
_CLEANUP: Final = "cleanup"
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
        """Whether the test has compiled it: once more would leave the first trace behind."""
        executor = getattr(self.pipeline, "executor", None)
        known = (
            getattr(self.pipeline, "output_schema", None),
            getattr(executor, "output_schema", None),
            getattr(executor, "trace_id", None),
        )
        return any(each is not None for each in known)

    @property
    def is_preallocated(self) -> bool:
        """Whether outputs go to the same tensors in every round."""
        return bool(getattr(self.pipeline, "preallocated_output_tensors", False))

    def compile(self) -> None:
        """Compile it with the first input, and capture its trace if it uses one."""
        self.pipeline.compile(self.inputs[0])

    def preallocate(self) -> None:
        """Make room for the outputs on the host."""
        getattr(self.pipeline, _PREALLOCATE)(len(self.inputs))

    def workload(self, sync: Callable[[], object] | None) -> Workload:
        """Return a round over all inputs; of few inputs for profilers, which have little room."""
        whole = self._round(self.inputs, sync)
        few = self.inputs[: self._fewest]
        return (
            whole if len(few) == len(self.inputs) else replace(whole, part=self._round(few, sync))
        )

    def serve(self, make_room: Callable[[], None]) -> list[Any]:
        """Return the outputs of all inputs, few at a time; ``make_room`` comes after each time."""
        if self.is_preallocated:  # the next few would overwrite them
            return _serve(self.pipeline, self.inputs)
        outputs: list[Any] = []
        for few in self._parts():
            outputs += _serve(self.pipeline, few)
            make_room()
        return outputs

    @property
    def _fewest(self) -> int:
        """The least inputs of a round: with transfers on a queue of their own, two overlap."""
        return 1 if self.facts.get(_SEPARATE) is False else 2

    def _parts(self) -> Iterator[list[Any]]:
        size, count = self._fewest, len(self.inputs)
        starts = range(0, max(count - size + 1, 1), size)
        for start in starts:  # the last takes what is left
            yield self.inputs[start : count if start == starts[-1] else start + size]

    def _round(self, inputs: list[Any], sync: Callable[[], object] | None) -> Workload:
        count = len(inputs)
        return Workload(
            partial(_serve, self.pipeline),
            (inputs,),
            sync=sync,
            # As much slower as there are inputs: what it tells of a round is the time of one.
            clock=lambda: perf_counter_ns() / count,
            inputs=count,
        )


def _serve(pipeline: Any, inputs: list[Any]) -> list[Any]:
    pipeline.enqueue(inputs)
    outputs: list[Any] = pipeline.pop_all()
    return outputs


def pipeline_of(
    pipeline: Any, inputs: Any, config: Any, *, preallocate: bool, cleanup: bool
) -> Pipeline:
    """Return a pipeline with its inputs and what is known of its configuration.

    Raises:
        UsageError: it is none, there are no inputs, or it is not what ``config`` says.
    """
    needed = [*_USED, *([_PREALLOCATE] if preallocate else []), *([_CLEANUP] if cleanup else [])]
    lacking = [name for name in needed if not callable(getattr(pipeline, name, None))]
    if lacking or isinstance(pipeline, type):
        lacks = f" without {', '.join(lacking)}()" if lacking else ""
        message = f"measure_pipeline takes a pipeline of TT-CNN: found {_name(pipeline)}{lacks}"
        raise UsageError(message)
    if not isinstance(inputs, (list, tuple)) or not inputs:
        found = "none" if isinstance(inputs, (list, tuple)) else _name(inputs)
        message = f"measure_pipeline takes a list of inputs on the host, found {found}"
        raise UsageError(message)
    facts = _facts(getattr(pipeline, "executor", None), config)
    known = Pipeline(pipeline, list(inputs), facts)
    return Pipeline(
        pipeline,
        known.inputs,
        {
            **facts,
            "pipeline_inputs": len(inputs),
            "preallocated_outputs": preallocate or known.is_preallocated,
        },
    )


def _facts(executor: Any, config: Any) -> dict[str, Scalar]:
    """Return how a pipeline is configured, as its executor shows and its configuration says."""
    observed = dict(_observed(executor))
    stated = dict(_stated(config))
    for name, value in stated.items():
        seen = observed.get(name, value)
        if seen != value:
            message = f"config has {name}={value}, and {_name(executor)} has {name}={seen}"
            raise UsageError(f"{message}: pass the one that the pipeline was made from")
    return {**stated, **observed}


def _stated(config: Any) -> Iterator[tuple[str, Scalar]]:
    if config is None:
        return
    names = {_TRACE: _TRACE, _QUEUES: _QUEUES, _FORMER_SEPARATE: _SEPARATE, _SEPARATE: _SEPARATE}
    found = [
        (known, getattr(config, name)) for name, known in names.items() if hasattr(config, name)
    ]
    if not found:
        message = f"config is a PipelineConfig, with {_TRACE} and {_QUEUES}: found {_name(config)}"
        raise UsageError(message)
    yield from found


def _observed(executor: Any) -> Iterator[tuple[str, Scalar]]:
    """Yield what an executor shows; of one that is none of TT-CNN's own, perhaps nothing."""
    if executor is None:
        return
    classes = {each.__name__ for each in type(executor).__mro__}
    if hasattr(executor, "trace_id") or any("Traced" in name for name in classes):
        yield _TRACE, True
    elif classes & _UNTRACED:
        yield _TRACE, False
    queues = {
        name: getattr(executor, name)
        for name in dir(type(executor))
        if name.startswith(_QUEUE) and isinstance(getattr(executor, name), int)
    }
    if not queues:
        if isinstance(getattr(executor, "cq_id", None), int):  # it has one for all
            yield _QUEUES, 1
            yield _SEPARATE, False
        return
    yield _QUEUES, len(set(queues.values()))
    computing = {queue for name, queue in queues.items() if name.startswith(_QUEUE_OF_OPS)}
    if computing and callable(getattr(executor, "get_read_cq", None)):
        yield _SEPARATE, executor.get_read_cq() not in computing


def _name(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else type(value).__name__
