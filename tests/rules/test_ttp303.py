"""Activations that go through DRAM."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import OpTable, Tensor, op, table, tensor

ask = Ask("TTP303")
LIMIT = limit(0.02, "of a step")
INPUT = tensor(1, 1, 64, 64)
#: 2.88 MB: 10 µs at 288 GB/s.
FAR = tensor(1, 1, 1200, 1200)
NEAR = FAR._replace(memory="L1_INTERLEAVED")
WEIGHTS = tensor(1, 1, 1200, 1216)
GIVEN = tensor(1, 1, 1200, 1216, memory="L1_INTERLEAVED")


def chain(handed: Tensor, *, ns: float = 50_000.0) -> OpTable:
    """An op makes what the next one reads; the last gives what nobody reads."""
    return table(
        op("UnaryDeviceOperation", [INPUT], [handed], ns=ns),
        op("MatmulDeviceOperation", [handed, WEIGHTS], [GIVEN], ns=ns),
        op("UnaryDeviceOperation", [GIVEN], [WEIGHTS._replace(dtype="FLOAT32")], ns=100_000.0),
    )


def test_what_is_written_and_read_again() -> None:
    assert ask(ops=chain(FAR)) == LIMIT.found(
        0.09,
        "5.493 MiB of activations go through DRAM, in 2 ops: up to 9.0 % of a step",
        [
            Evidence("Matmul 1x1x1200x1200 @ 1200x1216", 9_000.0, "ns", 0.045),
            Evidence("Unary 1x1x64x64", 9_000.0, "ns", 0.045),
        ],
    )
    assert ask.saving(ops=chain(FAR)) == (
        18_000.0,
        "5.493 MiB ÷ 288 GB/s, less a tenth: 18.0 µs",
    )


def test_ops_that_would_be_faster_than_the_chip_do_not_count() -> None:
    assert ask(ops=chain(FAR, ns=5_000.0)) == LIMIT.clean(0.0)  # their shapes are not their own


def test_weights_and_caches_do_not_count() -> None:
    assert ask(ops=chain(NEAR)) == LIMIT.clean(0.0)
    cache = op("PagedUpdateCacheDeviceOperation", [FAR], [FAR], ns=50_000.0)
    assert ask(ops=table(cache, *chain(NEAR))) == LIMIT.clean(0.0)


def test_what_does_not_fit_into_l1_has_to_be_in_dram() -> None:
    large = tensor(1, 1, 4096, 4096)
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [large], ns=500_000.0),
        op("UnaryDeviceOperation", [large], [NEAR], ns=500_000.0),
    )
    assert ask(ops=ops) == LIMIT.clean(0.0)


@pytest.mark.parametrize("code", ["TilizeDeviceOperation", "ReshardDeviceOperation"])
def test_conversions_are_for_other_rules(code: str) -> None:
    ops = table(op(code, [INPUT], [FAR], ns=50_000.0), op(code, [FAR], [NEAR], ns=50_000.0))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_single_ops() -> None:
    single = table(op("UnaryDeviceOperation", [INPUT], [FAR]))
    assert ask(ops=single) == not_applicable("no op reads what another one made")


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
    for silent in (replace(chain(FAR), arch=None), replace(chain(FAR), available_cores=None)):
        assert ask(ops=silent) == not_measured("the capture does not tell the chip and its cores")
