"""Activations that go through DRAM."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.convolving import DEVICE
from tests.rules.reports import Operation, Report, record, report
from tests.rules.tables import OpTable, Tensor, op, table, tensor

ask = Ask("TTP303")
LIMIT = limit(0.02, "of a step")
INPUT = tensor(1, 1, 64, 64)
#: 2.88 MB: 10 µs at 288 GB/s.
FAR = tensor(1, 1, 1200, 1200)
NEAR = FAR._replace(memory="L1_INTERLEAVED")
WEIGHTS = tensor(1, 1, 1200, 1216)
GIVEN = tensor(1, 1, 1200, 1216, memory="L1_INTERLEAVED")


def chain(handed: Tensor, *, ns: float = 50_000.0, first_ns: float = 25_000.0) -> OpTable:
    """An op makes what the next one reads; the last gives what nobody reads."""
    return table(
        op("UnaryDeviceOperation", [INPUT], [handed], ns=min(ns, first_ns)),
        op("MatmulDeviceOperation", [handed, WEIGHTS], [GIVEN], ns=ns),
        op("UnaryDeviceOperation", [GIVEN], [WEIGHTS._replace(dtype="FLOAT32")], ns=100_000.0),
    )


def test_what_is_written_and_read_again() -> None:
    part = 18_000 / 175_000
    assert ask(ops=chain(FAR)) == LIMIT.found(
        part,
        "5.493 MiB of activations go through DRAM, in 2 ops: up to 10.3 % of a step",
        [
            Evidence("Matmul 1x1x1200x1200 @ 1200x1216", 9_000.0, "ns", part / 2),
            Evidence("Unary 1x1x64x64", 9_000.0, "ns", part / 2),
        ],
    )
    assert ask.saving(ops=chain(FAR)) == (
        18_000.0,
        "5.493 MiB ÷ 288 GB/s, less a tenth, but not below each op's minimum: 18.0 µs",
    )


def test_where_a_result_goes_is_not_read() -> None:
    def following(code: str, inputs: int, attributes: str = "") -> OpTable:
        made = op("UnaryDeviceOperation", [INPUT], [FAR], ns=26_000.0)
        taken = op(code, [FAR] * inputs, [GIVEN], ns=24_000.0, attributes=attributes)
        return table(made, taken)

    read_ns = 9_000.0
    assert ask.saving(ops=following("UnaryDeviceOperation", 2)).ns == pytest.approx(read_ns)
    scalar = following("BinaryNgDeviceOperation", 3, "{'scalar': '2.5'}")
    assert ask.saving(ops=scalar).ns == pytest.approx(read_ns)
    # Both operands would be 18 µs, of which computing leaves less.
    both = following("BinaryNgDeviceOperation", 3, "{'scalar': 'std::nullopt'}")
    tiles_of_a_core = -(-1200 * 1216 // 1024 // 64)
    assert ask.saving(ops=both).ns == pytest.approx(24_000 - 650 * tiles_of_a_core)


def test_ops_that_would_be_faster_than_the_chip_do_not_count() -> None:
    assert ask(ops=chain(FAR, ns=5_000.0)) == LIMIT.clean(0.0)  # their shapes are not their own


def test_an_op_that_dram_does_not_limit_does_not_count() -> None:
    # The first op moves 10 µs of bytes in 26 µs, which is less than 40 % of the bandwidth.
    assert ask.saving(ops=chain(FAR, first_ns=26_000.0)).ns == pytest.approx(9_000.0)


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
        "the capture says nothing about the tensors that ops take and give"
    )
    for silent in (replace(chain(FAR), arch=None), replace(chain(FAR), available_cores=None)):
        assert ask(ops=silent) == not_measured("the capture does not give the chip and its cores")


COPY = ("CopyDeviceOperation",)
CALLS = [
    Operation(1, "ttnn.matmul", outputs=(1,), device_operations=("MatmulDeviceOperation",)),
    Operation(2, "ttnn.to_memory_config", inputs=(1,), outputs=(2,), device_operations=COPY),
    Operation(3, "ttnn.to_memory_config", inputs=(2,), outputs=(3,), device_operations=COPY),
    Operation(4, "ttnn.add", inputs=(3,), device_operations=("BinaryNgDeviceOperation",)),
]
EDGES = [(1, 1, 2), (2, 2, 3), (3, 3, 4)]


def moved(*memories: str, columns: int = 32, l1: int | None = 10**6) -> Report:
    """Return a program that hands tensors of 2 KiB on through these memories."""
    tensors = [
        record(at, 1, 1, 32, columns, memory=memory) for at, memory in enumerate(memories, start=1)
    ]
    device = DEVICE._replace(total_l1_bytes=l1)
    return replace(report(CALLS, tensors, EDGES), devices=(device,))


def test_a_round_trip_from_l1_to_dram_and_back_is_found_without_times() -> None:
    trips = moved("L1_INTERLEAVED", "DRAM_INTERLEAVED", "L1_HEIGHT_SHARDED")
    assert ask(report=trips) == limit(0, "round trips").found(
        1.0,
        "1 round trip from L1 to DRAM and back",
        [
            Evidence(
                "ttnn.to_memory_config → ttnn.to_memory_config (operations 2 and 3) 1x1x32x32, "
                "L1_INTERLEAVED → DRAM_INTERLEAVED → L1_HEIGHT_SHARDED"
            )
        ],
    )


FETCHED = limit(0.5, "of activation bytes")


def test_activations_of_a_report_that_lie_in_dram() -> None:
    fetched = moved("DRAM_INTERLEAVED", "DRAM_INTERLEAVED", "L1_INTERLEAVED")
    assert ask(report=fetched) == FETCHED.clean(
        2 / 3, reason="4.000 KiB in all: too little to matter in DRAM"
    )
    assert ask.with_limits(worth=4096.0)(report=fetched) == FETCHED.found(
        2 / 3,
        "2 of 3 activations that ops read lie in DRAM and would fit into L1, 66.7 % of the bytes",
        [
            Evidence("ttnn.matmul → ttnn.to_memory_config 1x1x32x32", 2048.0, "B"),
            Evidence("ttnn.to_memory_config → ttnn.to_memory_config 1x1x32x32", 2048.0, "B"),
        ],
    )


def test_what_does_not_fit_into_l1_has_to_be_there() -> None:
    memories = ("DRAM_INTERLEAVED",) * 3
    assert ask(report=moved(*memories, l1=4 * 2047)) == FETCHED.clean(0.0)
    assert ask(report=moved(*memories, l1=None)) == not_measured(
        "the report does not say how much L1 there is"
    )


def test_a_report_without_graphs_does_not_tell() -> None:
    bare = [Operation(1, "ttnn.add"), Operation(2, "ttnn.mul")]
    assert ask(report=report(bare)) == not_measured(
        "the report does not say what ran inside its operations"
    )
