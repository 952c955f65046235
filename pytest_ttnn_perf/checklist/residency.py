"""Where the tensors are that one op makes and another reads: activations, not weights."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.checklist.derived import once_per_table
from pytest_ttnn_perf.checklist.op_times import described, device_ops, signature_numbers
from pytest_ttnn_perf.checklist.operands import Operand, device_tensor, used_signatures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.model.report import Edge, Report

#: Why rules about activations say nothing of a prompt being read.
PREFILL: Final = "prefill: activations are as long as the prompt, and stream through DRAM"
#: Why they say nothing of a program in which no op reads what another made.
NO_ACTIVATIONS: Final = "no op reads what another one made"

_SHARDING: Final = re.compile(r"(HEIGHT|WIDTH|BLOCK|ND)_SHARDED")
_CACHE: Final = re.compile(r"cache", re.IGNORECASE)
_FILLS: Final = ("fillcache", "fill_cache", "updatecacheoptype::fill")
_DECODES: Final = re.compile(
    r"sdpa_?decode|heads_?decode|paged_?(fused_?)?update_?cache|UpdateCacheOpType::UPDATE",
    re.IGNORECASE,
)


class Reads(NamedTuple):
    """Ops of one signature, and those of their inputs that ops before them made."""

    ops: Sequence[Op]
    activations: tuple[Tensor, ...]


@once_per_table
def activation_reads(table: OpTable) -> Sequence[Reads]:
    """Return the ops of devices with the activations that they read.

    A capture does not name tensors: one that has the shape, dtype and memory of an earlier output
    of the same device is taken for it. Weights are never an output. Caches, which ops write in
    place and which stay where they are, do not count.
    """
    caches = {
        _kind(tensor)
        for signature, _ in used_signatures(table)
        if _CACHE.search(signature.op)
        for tensor in signature.outputs
    }
    made: dict[int, set[tuple[object, ...]]] = defaultdict(set)
    found: dict[tuple[int, int, int], tuple[Tensor, ...]] = {}
    ops: dict[tuple[int, int, int], list[Op]] = defaultdict(list)
    for op, number in zip(device_ops(table), signature_numbers(table), strict=True):
        here = made[op.device]
        # What was made only grows: as long as it is as much, a signature reads the same of it.
        key = (op.device, number, len(here))
        if key not in found:
            inputs, outputs = op.signature.inputs, op.signature.outputs
            found[key] = tuple(tensor for tensor in inputs if _kind(tensor) in here)
            here.update(set(map(_kind, outputs)) - caches)
        ops[key].append(op)
    return tuple(Reads(ops[key], activations) for key, activations in found.items())


def activation_operands(table: OpTable) -> Iterator[Operand]:
    """Yield the activations that ops of devices read, by what people call these ops."""
    for ops, activations in activation_reads(table):
        name = described(ops[0])
        yield from (Operand(name, tensor, len(ops), given=False) for tensor in activations)


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return (tensor.padded, tensor.dtype, tensor.memory)


def activation_edges(report: Report) -> Iterator[tuple[Edge, Tensor]]:
    """Yield the tensors of a report that one operation computed and another one computes with."""
    computing = {operation.id for operation in report.operations if operation.device_operations}
    for edge in report.edges:
        tensor = device_tensor(report.tensors.get(edge.tensor))
        if tensor is not None and {edge.producer, edge.consumer} <= computing:
            yield edge, tensor


def in_dram(tensor: Tensor) -> bool:
    """Tell whether a tensor lies in DRAM."""
    return tensor.memory.startswith("DRAM")


def is_interleaved(tensor: Tensor) -> bool:
    """Tell whether a tensor is spread over all banks, page by page."""
    return "INTERLEAVED" in tensor.memory


def sharding_in(memory: str | None) -> str | None:
    """Return how a memory layout cuts tensors; None where it does not.

    >>> sharding_in("L1_HEIGHT_SHARDED"), sharding_in("DRAM_INTERLEAVED")
    ('HEIGHT', None)
    """
    found = _SHARDING.search(memory or "")
    return None if found is None else found[1]


@once_per_table
def is_prefill(table: OpTable) -> bool:
    """Tell whether a language model only reads its prompt: caches are filled, nothing is decoded.

    Its activations are as long as the prompt, and rarely fit into L1.
    """
    columns = table.columns
    words = {table.signatures[number].op for number in set(columns.signature)}
    words |= {table.attribute_texts[number] for number in set(columns.attributes) - {-1}}
    return any(map(_fills, words)) and not any(map(_DECODES.search, words))


def _fills(text: str) -> bool:
    # Of every attribute of every program: plain words are found many times faster than a pattern.
    lowered = text.lower()
    return any(word in lowered for word in _FILLS)
