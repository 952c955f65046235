"""Small op tables, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.ops import HOST, Columns, Op, OpTable, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

ACTIVATION = Tensor((1, 1, 32, 4096), (1, 1, 32, 4096), "TILE", "BFLOAT16", "L1_WIDTH_SHARDED")
WEIGHT = Tensor((1, 1, 4096, 1024), (1, 1, 4096, 1024), "TILE", "BFLOAT16", "DRAM_INTERLEAVED")
OUTPUT = ACTIVATION._replace(padded=(1, 1, 32, 1024), logical=(1, 1, 32, 1024))
#: Ops of three codes; the last has the operands of the second.
MATMUL = Signature("MatmulDeviceOperation", (ACTIVATION, WEIGHT), (OUTPUT,))
RESHARD = Signature("ReshardDeviceOperation", (OUTPUT,), (OUTPUT,))
NORM = Signature("LayerNormDeviceOperation", (OUTPUT,), (OUTPUT,))


def op(
    signature: Signature = MATMUL,
    kernel_ns: float = 10_000.0,
    *,
    device: int = 0,
    cores: int | None = 64,
    fidelity: str | None = "HiFi4",
    attributes: str = "",
    replay: tuple[int, int] | None = None,
) -> Op:
    """Return a row; ``replay`` is a trace and which execution of it."""
    return Op(
        signature,
        device,
        kernel_ns,
        fw_ns=None,
        gap_ns=None,
        ideal_ns=None,
        cores=cores,
        fidelity=fidelity,
        attributes=attributes,
        trace=replay[0] if replay else None,
        replay=replay[1] if replay else None,
        start_cycle=None,
        host=device == HOST,
    )


def table(ops: Iterable[Op]) -> OpTable:
    """Return the table of these rows."""
    rows = list(ops)
    signatures = list(dict.fromkeys(row.signature for row in rows))
    fidelities = list(dict.fromkeys(row.fidelity for row in rows if row.fidelity))
    texts = list(dict.fromkeys(row.attributes for row in rows if row.attributes))
    columns = Columns(
        signature=[signatures.index(row.signature) for row in rows],
        fidelity=[fidelities.index(row.fidelity) if row.fidelity else -1 for row in rows],
        attributes=[texts.index(row.attributes) if row.attributes else -1 for row in rows],
        device=[row.device for row in rows],
        kernel_ns=[row.kernel_ns for row in rows],
        fw_ns=[row.fw_ns for row in rows],
        gap_ns=[row.gap_ns for row in rows],
        ideal_ns=[row.ideal_ns for row in rows],
        cores=[row.cores for row in rows],
        trace=[row.trace for row in rows],
        replay=[row.replay for row in rows],
        start_cycle=[row.start_cycle for row in rows],
        host=[row.host for row in rows],
    )
    return OpTable("V2.1", len(rows), columns, signatures, fidelities, texts)


def resized(
    signature: Signature, *, padded: tuple[int, ...], logical: tuple[int, ...] | None
) -> Signature:
    """Return an op whose first input and only output have another shape."""
    first, *others = signature.inputs
    first = first._replace(padded=padded, logical=logical)
    return signature._replace(inputs=(first, *others), outputs=(first,))


def retyped(signature: Signature, dtype: str) -> Signature:
    """Return an op whose last input is of another dtype."""
    *others, last = signature.inputs
    return signature._replace(inputs=(*others, last._replace(dtype=dtype)))
