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
    assert ask.saving(ops=ops) == (100.0, "at most the time of 3 ops: 0.1 µs")


def test_what_to_do_depends_on_the_op() -> None:
    given = tensor(1, 1, 32, 128)
    matmul = op("MatmulDeviceOperation", [INPUT, INPUT], [given], ns=100.0)
    halo = op("HaloDeviceOperation", [INPUT], [given], ns=100.0)
    expected = {
        "SliceDeviceOperation": "Cut what is sliced before it is computed",
        "MoveDeviceOperation": "Drop `ttnn.move`",
        "PermuteDeviceOperation": "These ops only rearrange data: look for a form",
        "RepeatDeviceOperation": "These ops only rearrange data: look for a form",
        "FillPadDeviceOperation": "These ops only rearrange data: look for a form",
    }
    for code, fix in expected.items():
        assert fix_of(matmul, op(code, [given], [INPUT], ns=100.0), matmul).startswith(fix)
    moved = fix_of(halo, op("MoveDeviceOperation", [given], [given], ns=100.0), matmul)
    assert moved.startswith("Set `reallocate_halo_output=False`")


def fix_of(*rows: Op) -> str:
    fix = ask.fix(ops=table(*rows))
    assert fix is not None
    return fix


def test_heads_are_made_and_merged_in_one_op() -> None:
    product = tensor(1, 1, 32, 768, logical=(1, 1, 19, 768))
    split = tensor(1, 19, 32, 64, logical=(1, 19, 12, 64))
    heads = tensor(1, 12, 32, 64, logical=(1, 12, 19, 64))
    matmul = op("Matmul", [product, tensor(768, 768)], [product])
    reshape = op("ReshapeDeviceOperation", [product], [split], ns=500.0)
    transpose = op("TransposeDeviceOperation", [split], [heads], ns=400.0)
    attention = op("SDPAOperation", [heads, heads, heads], [heads])
    making = fix_of(matmul, reshape, reshape, transpose, transpose, attention)
    assert making == (
        "Make the heads in one op: `ttnn.experimental.nlp_create_qkv_heads` or "
        "`ttnn.transformer.split_query_key_value_and_split_heads`."
    )
    back = op("TransposeDeviceOperation", [heads], [split], ns=400.0)
    merge = op("ReshapeDeviceOperation", [split], [product], ns=500.0)
    merging = fix_of(matmul, attention, back, merge, matmul)
    assert merging == "Merge the heads in one op: `ttnn.transformer.concatenate_heads`."


def test_reshapes_by_their_shapes_and_the_next_op() -> None:
    flat = tensor(1, 1, 25312, 256, logical=(1, 1, 25281, 256))
    image = tensor(1, 159, 160, 256, logical=(1, 159, 159, 256))
    made = op("UnaryDeviceOperation", [flat], [flat])
    reshape = op("ReshapeDeviceOperation", [flat], [image], ns=5000.0)
    sliced = op("PaddedSliceDeviceOperation", [image], [tensor(1, 1, 12879, 256)])
    assert fix_of(made, reshape, sliced).startswith("Untilize before the reshape")
    added = op("BinaryNgDeviceOperation", [image], [image])
    assert fix_of(made, reshape, added) == (
        "A tiled reshape that keeps the last two dims is a free view; this one does not."
    )


def test_rows_of_few_elements_come_from_a_permute() -> None:
    given = tensor(1, 7, 2528, 256, layout="ROW_MAJOR")
    short = tensor(1, 2528, 256, 7, layout="ROW_MAJOR")
    made = op("UntilizeDeviceOperation", [tensor(1, 7, 2528, 256)], [given])
    permute = op("PermuteDeviceOperation", [given], [short], ns=900.0)
    reshape = op(
        "ReshapeDeviceOperation",
        [tensor(1, 1, 647168, 7, layout="ROW_MAJOR")],
        [tensor(1, 1, 2528, 1792, layout="ROW_MAJOR")],
        ns=9000.0,
    )
    assert fix_of(made, permute, reshape, op("Matmul")) == (
        "Keep a long dim last in the permute before the reshape: rows of 7 elements are moved one "
        "by one."
    )


def test_what_follows_the_search_of_a_decode_is_sampling() -> None:
    logits = tensor(1, 1, 32, 4096)
    matmul = op("Matmul", [INPUT, tensor(64, 4096)], [logits])
    search = op("ArgMaxDeviceOperation", [logits], [INPUT])
    reshape = op("ReshapeDeviceOperation", [INPUT], [tensor(1, 1, 64, 32)], ns=500.0)
    end = op("BinaryNgDeviceOperation", [INPUT], [INPUT])
    assert ask(ops=table(matmul, search, reshape, end)) == LIMIT.clean(0.0)
    assert ask.saving(ops=table(search, reshape, matmul)).ns == 500.0


def test_inside_a_replay_the_gaps_before_ops_go_with_them() -> None:
    def traced(code: str, ns: float) -> Op:
        return op(code, [INPUT], [INPUT], ns=ns, gap_ns=900.0, replay=(0, 1))

    rows = (traced("Matmul", 9_000.0), traced("Slice", 2_000.0), traced("Matmul", 9_000.0))
    assert ask.saving(ops=table(*rows)) == (
        2_900.0,
        "at most the time of 1 op: 2.0 µs and 0.9 µs of the gap before it",
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
