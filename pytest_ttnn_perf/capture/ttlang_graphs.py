"""The graphs in a tt-lang log: circular buffers with their users, and pipes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._support.errors import DecodeError
from pytest_ttnn_perf._support.json_text import loads
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.ttlang import (
    CircularBuffer,
    FlowGraph,
    GraphOp,
    Pipe,
    PipeGraph,
    ProblemKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.capture.ttlang_lines import Lines

G = TypeVar("G")

_FINDER: Final = json.JSONDecoder()


def read_flow_graph(lines: Lines) -> FlowGraph | None:
    """Read the graph below its heading; None, and a problem, where there is none."""
    return _graph(lines, _flow_graph, what="FLOW GRAPH")


def read_pipe_graph(lines: Lines) -> PipeGraph | None:
    """Read the graph below its heading; None, and a problem, where there is none."""
    return _graph(lines, _pipe_graph, what="PIPE GRAPH")


def _graph(lines: Lines, decode: Callable[[Value], G], *, what: str) -> G | None:
    start = lines.number
    lines.begin()
    while lines.peek() == "":
        lines.take()
    if not (lines.peek() or "").startswith("{"):
        lines.report(ProblemKind.CUT, f"{what}: expected JSON below the heading", line=start)
        return None
    # The document ends before the next line of output, or the next heading, wherever that is.
    text = "\n".join(lines.rest_of_section())
    try:
        _, end = _FINDER.raw_decode(text)
        graph = decode(Value(loads(text[:end])))
    except (ValueError, RecursionError, DecodeError) as cause:
        problem = cause.msg if isinstance(cause, json.JSONDecodeError) else str(cause)
        lines.report(ProblemKind.CUT, f"{what}: cannot be read: {problem}", line=start)
        lines.take()
        return None
    for _ in range(text.count("\n", 0, end) + 1):
        lines.take()
    return graph


def _flow_graph(root: Value) -> FlowGraph:
    buffers = [_buffer(buffer) for buffer in root.field("circular_buffers").array()]
    # The compiler's order changes from run to run.
    return FlowGraph(tuple(sorted(buffers, key=lambda buffer: buffer.number)))


def _buffer(value: Value) -> CircularBuffer:
    def ops(name: str) -> tuple[GraphOp, ...]:
        found = [_op(op) for op in value.field(name).array()]
        return tuple(sorted(found, key=lambda op: (op.kernel, op.line or -1, op.op)))

    index = value.field("cb_index").integer()
    return CircularBuffer(
        index, ops("producers"), ops("consumers"), ops("dma_ops"), ops("wait_ops")
    )


def _op(value: Value) -> GraphOp:
    line = value.field("line").integer(at_least=-1)
    direction = value.optional("direction")
    return GraphOp(
        value.field("kernel").string(),
        value.field("thread").string(),
        None if line < 0 else line,
        value.field("op").string(),
        None if direction is None else direction.string(),
    )


def _pipe_graph(root: Value) -> PipeGraph:
    pipes = tuple(_pipe(pipe) for pipe in root.field("pipes").array())
    return PipeGraph(root.field("numPipeRuntimeArgs").integer(), pipes)


def _pipe(value: Value) -> Pipe:
    def core(prefix: str) -> tuple[int, int]:
        return value.field(f"{prefix}X").integer(), value.field(f"{prefix}Y").integer()

    net = value.optional("pipeNetId")
    return Pipe(
        core("src"),
        core("dstStart"),
        core("dstEnd"),
        value.field("receiverCBIndex").integer(at_least=-1),
        value.field("runtimeArgSlot").integer(at_least=-1),
        None if net is None else net.integer(at_least=-1),
    )
