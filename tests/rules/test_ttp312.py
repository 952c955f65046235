"""Blocks of matmuls."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP312")
LIMIT = limit(0.05, "of kernel time")
INPUT, WEIGHTS = tensor(1, 1, 32, 128), tensor(1, 1, 128, 64)


def matmul(
    *, inner: int = 2, height: int = 1, width: int = 2, per_core: tuple[int, int] = (1, 4)
) -> Op:
    """Return a matmul with blocks of these tiles."""
    config = (
        f"MatmulMultiCoreReuseMultiCast1DProgramConfig(in0_block_w={inner};out_subblock_h={height};"
        f"out_subblock_w={width};per_core_M={per_core[0]};per_core_N={per_core[1]})"
    )
    attributes = f"{{'bcast_batch': '1'; 'program_config': '{config}'}}"
    return op("MatmulDeviceOperation", [INPUT, WEIGHTS], ns=50.0, attributes=attributes)


@pytest.mark.parametrize(
    "small",
    [
        matmul(inner=1),
        matmul(width=1),
        op(
            "MinimalMatmulOp",
            [INPUT, WEIGHTS],
            ns=50.0,
            attributes="{'config': 'Minimal(K_block_size=1;subblock_h=2;subblock_w=2)'}",
        ),
    ],
    ids=["inner", "subblock", "minimal matmul"],
)
def test_blocks_of_one_tile(small: Op) -> None:
    name = "MinimalMatmulOp" if small.signature.op == "MinimalMatmulOp" else "Matmul"
    ops = table(small, op("UnaryDeviceOperation", ns=50.0))
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of the kernel time goes into 1 matmul with very small blocks",
        [Evidence(f"{name} 1x1x32x128 @ 128x64", 50.0, "ns", 0.5)],
    )
    assert ask.with_limits(share=0.5)(ops=ops) == clean(0.5, limit=0.5, unit=LIMIT.unit)


@pytest.mark.parametrize(
    "other",
    [
        matmul(),
        matmul(width=1, per_core=(1, 1)),
        matmul(inner=1)._replace(
            signature=matmul().signature._replace(inputs=(tensor(1, 1, 32, 32), WEIGHTS))
        ),
    ],
    ids=["two tiles", "one output tile", "one inner tile"],
)
def test_blocks_that_are_as_large_as_they_can_be(other: Op) -> None:
    assert ask(ops=table(other)) == LIMIT.clean(0.0)


def test_inputs_that_do_not_tell() -> None:
    assert ask(Subject(ops=table(op("Unary")))) == not_applicable("no matmuls")
    silent = Subject(ops=table(op("Matmul", attributes="{'program_config': 'std::nullopt'}")))
    assert ask(silent) == not_measured("the attributes of matmuls do not tell the sizes of blocks")
