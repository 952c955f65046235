"""A stand-in for tt-metal's ``models/tt_cnn``: its pipeline and its executors.

Copied into projects under test, so it imports nothing of ours. ``Chip`` is a device in memory; the
tests on the stand-in for TTNN have one that runs programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = __file__


class Host:
    """A tensor on the host."""

    def __init__(self, data: Any) -> None:
        self.data = data


class Chip:
    """A device: buffers are lists of one value, so that what is written later is seen."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.traces: dict[int, tuple[Callable[[Any], Any], Any, Any]] = {}

    def allocate(self) -> Any:
        self.log.append("allocate")
        return [None]

    def write(self, host: Host, buffer: Any, queue: int) -> None:
        self.log.append(f"write {queue}")
        buffer[0] = host.data

    def run(self, model: Callable[[Any], Any], buffer: Any) -> Any:
        self.log.append("run")
        return [model(buffer[0])]

    def capture(self, model: Callable[[Any], Any], buffer: Any) -> tuple[int, Any]:
        self.log.append("capture")
        output = [None]
        self.traces[len(self.traces)] = (model, buffer, output)
        return len(self.traces) - 1, output

    def replay(self, trace: int) -> None:
        self.log.append("replay")
        model, buffer, output = self.traces[trace]
        output[0] = model(buffer[0])

    def release(self, trace: int) -> None:
        self.log.append("release")
        del self.traces[trace]

    def read(self, buffer: Any, queue: int, into: Host | None = None) -> Host:
        self.log.append(f"read {queue}")
        into = into or Host(None)
        into.data = buffer[0]
        return into

    def synchronize(self) -> None:
        self.log.append("synchronize")


class Executor:
    """What all have in common; as in TT-CNN the schema of the output is known once compiled."""

    write_queue = read_queue = 0

    def __init__(self, model: Callable[[Any], Any], device: Any) -> None:
        self.model, self.device = model, device
        self.output_schema: object = None
        self.input: Any = None

    def get_read_cq(self) -> int:
        return self.read_queue

    def compile(self, host_input: Any) -> None:
        self.input = self.device.allocate()
        self.device.write(host_input, self.input, self.write_queue)
        self.device.run(self.model, self.input)
        self.output_schema = ("shape", "dtype", "layout")
        self._compiled()
        self.device.synchronize()

    def execute(self, host_inputs: list[Any]) -> Iterator[Any]:
        for host_input in host_inputs:
            self.device.write(host_input, self.input, self.write_queue)
            yield self._run()

    def cleanup(self) -> None:
        """There is no trace to release."""

    def _run(self) -> Any:
        return self.device.run(self.model, self.input)

    def _compiled(self) -> None:
        """Untraced executors are done."""


class ModelExecutor(Executor):
    cq_id = 0


class MultiCQModelOverlappedInputExecutor(Executor):
    CQ_OPS_AND_OUTPUT_READ = 0
    CQ_INPUT_WRITE = write_queue = 1


class Replaying(Executor):
    """The part of the traced ones; not a class of TT-CNN's."""

    trace_id: int | None = None
    output: Any = None

    def _compiled(self) -> None:
        self.trace_id, self.output = self.device.capture(self.model, self.input)

    def _run(self) -> Any:
        self.device.replay(self.trace_id)
        return self.output

    def cleanup(self) -> None:
        if self.trace_id is not None:  # it stays set, as there
            self.device.release(self.trace_id)


class TracedModelExecutor(Replaying):
    cq_id = 0


class MultiCQTracedModelOverlappedInputExecutor(Replaying):
    CQ_OPS_AND_OUTPUT_READ = 0
    CQ_INPUT_WRITE = write_queue = 1


class MultiCQTracedModelPipelinedIOExecutor(Replaying):
    CQ_OPS = 0
    CQ_IO = write_queue = read_queue = 1

    def execute(self, host_inputs: list[Any]) -> Iterator[Any]:
        assert len(host_inputs) >= 2, "as there"
        yield from super().execute(host_inputs)


@dataclass
class PipelineConfig:
    use_trace: bool = True
    num_command_queues: int = 1
    all_transfers_on_separate_command_queue: bool = False


class Pipeline:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.output_tensors: list[Any] = []
        self.preallocated_output_tensors = False

    def compile(self, host_input: Any) -> Pipeline:
        self.executor.compile(host_input)
        return self

    def preallocate_output_tensors_on_host(self, number_of_tensors_to_allocate: int) -> Pipeline:
        assert self.executor.output_schema is not None, "it must be compiled before"
        self.preallocated_output_tensors = True
        self.output_tensors = [Host(None) for _ in range(number_of_tensors_to_allocate)]
        return self

    def enqueue(self, host_inputs: list[Any]) -> Pipeline:
        queue, read = self.executor.get_read_cq(), self.executor.device.read
        outputs = self.executor.execute(host_inputs)
        if self.preallocated_output_tensors:
            for output, into in zip(outputs, self.output_tensors, strict=False):
                read(output, queue, into)
        else:
            self.output_tensors = [read(output, queue) for output in outputs]
        return self

    def pop_all(self) -> list[Any]:
        self.executor.device.synchronize()
        return self.output_tensors

    def cleanup(self) -> None:
        self.executor.cleanup()


EXECUTORS: dict[tuple[bool, int, bool], type[Executor]] = {
    (False, 1, False): ModelExecutor,
    (True, 1, False): TracedModelExecutor,
    (False, 2, False): MultiCQModelOverlappedInputExecutor,
    (True, 2, False): MultiCQTracedModelOverlappedInputExecutor,
    (True, 2, True): MultiCQTracedModelPipelinedIOExecutor,
}


def create_pipeline_from_config(
    config: PipelineConfig, model: Callable[[Any], Any], device: Any
) -> Pipeline:
    separate = config.all_transfers_on_separate_command_queue
    chosen = (config.use_trace, config.num_command_queues, separate)
    return Pipeline(EXECUTORS[chosen](model, device))
