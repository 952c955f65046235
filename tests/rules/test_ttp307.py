"""Ops that only rearrange data."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable
from tests.rules.tables import Op, OpTable, op, table, tensor

ask = Ask("TTP307")
LIMIT = limit(0.05, "of a step")
INPUT = tensor(1, 1, 32, 64)


def test_reshapes_and_slices() -> None:
    ops = table(
        op("Matmul", ns=800.0),
        op("ReshapeViewDeviceOperation", [INPUT], ns=60.0),
        op("SliceDeviceOperation", [INPUT], ns=20.0),
        op("SliceDeviceOperation", [INPUT], ns=20.0),
        op("Matmul", ns=100.0),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.1,
        "10.0 % of a step only rearranges data, in 3 ops",
        [
            Evidence("ReshapeView 1x1x32x64", 60.0, "ns", 0.06),
            Evidence("2 x Slice 1x1x32x64", 40.0, "ns", 0.04),
        ],
    )
    assert ask.saving(ops=ops) == (100.0, "the time of 3 ops: 0.1 µs")


def test_what_to_do_depends_on_the_op() -> None:
    given = tensor(1, 1, 32, 128)
    matmul = op("MatmulDeviceOperation", [INPUT, INPUT], [given], ns=100.0)
    halo = op("HaloDeviceOperation", [INPUT], [given], ns=100.0)
    expected = {
        "SliceDeviceOperation": "Split the weights whose product is cut apart",
        "MoveDeviceOperation": "Drop `ttnn.move`",
        "PermuteDeviceOperation": "Keep the order of extents",
        "RepeatDeviceOperation": "Let the next op broadcast",
    }
    for code, fix in expected.items():
        found = ask.fix(ops=table(matmul, op(code, [given], [INPUT], ns=100.0), matmul))
        assert found is not None
        assert found.startswith(fix)
    moved = ask.fix(ops=table(halo, op("MoveDeviceOperation", [given], [given], ns=100.0), matmul))
    assert moved is not None
    assert moved.startswith("Set `reallocate_halo_output=False`")


def test_inside_a_replay_the_gaps_before_ops_go_with_them() -> None:
    def traced(code: str, ns: float) -> Op:
        return op(code, [INPUT], [INPUT], ns=ns, gap_ns=900.0, replay=(0, 1))

    rows = (traced("Matmul", 9_000.0), traced("Slice", 2_000.0), traced("Matmul", 9_000.0))
    assert ask.saving(ops=table(*rows)) == (
        2_900.0,
        "the time of 1 op: 2.0 µs and 0.9 µs of the gap before it",
    )
    outside = table(*(row._replace(trace=None, replay=None) for row in rows))
    assert ask.saving(ops=outside).ns == 2_000.0


def test_a_concat_as_fast_as_dram_allows_has_to_be() -> None:
    part, whole = tensor(1, 1, 1200, 1200), tensor(1, 1, 1200, 2400)

    def concat(ns: float) -> OpTable:
        return table(
            op("Matmul", ns=9e4),
            op("ConcatDeviceOperation", [part, part], [whole], ns=ns),
            op("Matmul"),
        )

    assert ask.saving(ops=concat(200_000.0)).ns == 200_000.0
    assert ask(ops=concat(50_000.0)) == LIMIT.clean(0.0)  # 11.52 MB: 40 µs at 288 GB/s


def test_an_input_of_the_host_has_to_be_rearranged_unless_that_is_slow() -> None:
    rows = tensor(1, 1, 1200, 1200, layout="ROW_MAJOR")  # 2.88 MB: 20 µs to read and write it

    def with_input(ns: float) -> OpTable:
        permute = op("PermuteDeviceOperation", [rows], [rows], ns=ns)
        return table(op("Matmul", [INPUT], [INPUT], ns=5e4), permute, op("Matmul", ns=5e4))

    assert ask(ops=with_input(200_000.0)) == LIMIT.clean(0.0)
    answer = ask(ops=with_input(300_000.0))
    assert answer.reason == (
        "60.0 % of a step only rearranges data, in 1 op, 1 slow input conversion among them"
    )
    assert answer.evidence[0].subject == "Permute 1x1x1200x1200, a slow input conversion"
    assert answer.evidence[0].value == pytest.approx(300_000 - 3 * 20_000)


@pytest.mark.parametrize(
    "code",
    [
        *("ReshardDeviceOperation", "CopyDeviceOperation", "HaloDeviceOperation", "Tilize"),
        *("PaddedSliceDeviceOperation", "EmbeddingsDeviceOperation", "GridSample", "AllGather"),
        *("NlpCreateHeadsDeviceOperation", "BinaryNgDeviceOperation"),
    ],
)
def test_what_is_for_other_rules_or_has_to_be(code: str) -> None:
    assert ask(ops=table(op(code, ns=500.0), op("Matmul", ns=500.0))) == LIMIT.clean(0.0)


def test_up_to_the_limit_is_clean() -> None:
    ops = table(op("Matmul", ns=90.0), op("ConcatDeviceOperation", ns=5.0), op("Matmul", ns=5.0))
    assert ask(ops=ops) == LIMIT.clean(0.05)


def test_a_step_that_is_meant_to_rearrange() -> None:
    assert ask(ops=table(op("SliceDeviceOperation"))) == not_applicable(
        "a step that does nothing else"
    )
