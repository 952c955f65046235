"""Small op tables for rules, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.ops import HOST, Columns, Op, OpTable, Signature, Tensor, TraceReplays

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Op", "OpTable", "Tensor", "TraceReplays", "on_host", "op", "table", "tensor"]


def tensor(
    *shape: int,
    dtype: str = "BFLOAT16",
    memory: str = "DRAM_INTERLEAVED",
    layout: str = "TILE",
    logical: tuple[int, ...] | None = None,
) -> Tensor:
    """Return an operand; its logical shape is its padded one unless given."""
    return Tensor(shape, logical or shape, layout, dtype, memory)


def op(
    code: str,
    inputs: Iterable[Tensor] = (),
    outputs: Iterable[Tensor] = (),
    *,
    ns: float = 1000.0,
    device: int = 0,
    fw_ns: float | None = None,
    gap_ns: float | None = None,
    ideal_ns: float | None = None,
    cores: int | None = 64,
    fidelity: str | None = None,
    attributes: str = "",
    replay: tuple[int, int] | None = None,
    start_cycle: int | None = None,
) -> Op:
    """Return a row; ``replay`` is a trace and which execution of it."""
    return Op(
        Signature(code, tuple(inputs), tuple(outputs)),
        device,
        ns,
        fw_ns,
        gap_ns,
        ideal_ns,
        cores,
        fidelity,
        attributes,
        trace=replay[0] if replay else None,
        replay=replay[1] if replay else None,
        start_cycle=start_cycle,
        host=device == HOST,
    )


def on_host(code: str) -> Op:
    """Return an op that ran on the host."""
    return op(code, ns=0.0, device=HOST, cores=None)


def table(
    *rows: Op,
    traces: tuple[TraceReplays, ...] = (),
    available_cores: int | None = 64,
    arch: str | None = "wormhole_b0",
) -> OpTable:
    """Return the table of these rows."""
    signatures = list(dict.fromkeys(row.signature for row in rows))
    fidelities = list(dict.fromkeys(row.fidelity for row in rows if row.fidelity))
    texts = list(dict.fromkeys(row.attributes for row in rows if row.attributes))
    same = {
        name: [getattr(row, name) for row in rows]
        for name in Columns.__struct_fields__
        if name not in {"signature", "fidelity", "attributes"}
    }
    columns = Columns(
        signature=[signatures.index(row.signature) for row in rows],
        fidelity=[fidelities.index(row.fidelity) if row.fidelity else -1 for row in rows],
        attributes=[texts.index(row.attributes) if row.attributes else -1 for row in rows],
        **same,
    )
    return OpTable(
        "v2.1",
        len(rows),
        columns,
        signatures,
        fidelities,
        texts,
        traces=traces,
        arch=arch,
        available_cores=available_cores,
    )
