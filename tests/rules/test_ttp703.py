"""Time that links take."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP703")
LIMIT = limit(0.02, "of a step")
#: 8 MiB: too much for one all-reduce in L1.
LARGE, SMALL = tensor(1, 1, 1024, 4096), tensor(1, 1, 32, 4096)
GATHER, SCATTER = "AllGatherAsyncDeviceOperation", "ReduceScatterDeviceOperation"


def mesh(*rows: Op, waiting_ns: float = 0.0) -> tuple[Op, ...]:
    """Return rows of device 0, and the same of device 1, which waits in collectives."""
    late = [row.signature.op in {GATHER, SCATTER} for row in rows]
    others = [
        row._replace(device=1, kernel_ns=row.kernel_ns + waiting_ns * waits)
        for row, waits in zip(rows, late, strict=True)
    ]
    return (*rows, *others)


MATMUL = op("Matmul", ns=100_000.0)


def test_a_narrower_format_saves_what_it_leaves_out() -> None:
    gather = op(GATHER, [LARGE], [LARGE], ns=110_000.0)
    ops = table(*mesh(MATMUL, gather, waiting_ns=40_000.0))
    saved = 100_000 * (1 - 1.0625 / 2)
    assert ask(ops=ops) == LIMIT.found(
        saved / 250_000,
        "44.0 % of a step goes into 1 collective, excluding time spent waiting for other devices",
        [Evidence("AllGatherAsync 1x1x1024x4096", saved, "ns", saved / 250_000)],
    )
    assert ask.saving(ops=ops) == (
        saved,
        "bfloat8_b beyond 10 µs each, all-reduce for small pairs: 110.0 µs → 63.1 µs",
    )
    narrow = gather._replace(
        signature=gather.signature._replace(inputs=(LARGE._replace(dtype="BFLOAT8_B"),))
    )
    assert ask(ops=table(*mesh(MATMUL, narrow))) == LIMIT.clean(0.0)


def test_a_small_gather_behind_a_scatter_is_saved_as_a_whole() -> None:
    ops = [
        MATMUL,
        op(SCATTER, [SMALL], [SMALL], ns=10_000.0),
        op("Unary"),
        op(GATHER, [SMALL], [SMALL], ns=15_000.0),
    ]
    assert ask.saving(ops=table(*mesh(*ops))).ns == 15_000.0
    between = [op("Unary")] * 5
    apart = table(*mesh(*ops[:2], *between, ops[-1]))
    assert ask.with_limits(share=0).saving(ops=apart).ns == pytest.approx(5_000 * (1 - 1.0625 / 2))


@pytest.mark.parametrize(
    ("attributes", "fix"),
    [
        ("{'num_links': '1'}", "Exchange bfloat8_b, over all links (`num_links`)."),
        ("{'num_links': '2'}", "Exchange bfloat8_b."),
        ("", "Exchange bfloat8_b."),
    ],
)
def test_more_links_are_advised_where_one_is_used(attributes: str, fix: str) -> None:
    gather = op(GATHER, [LARGE], [LARGE], ns=110_000.0, attributes=attributes)
    assert ask.fix(ops=table(*mesh(MATMUL, gather))) == fix


def test_short_exchanges_are_clean() -> None:
    ops = table(*mesh(MATMUL, op(GATHER, [SMALL], [SMALL], ns=10_000.0)))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_a_fused_collective_is_a_matmul() -> None:
    fused = op("AllGatherMatmulAsyncDeviceOperation", [LARGE], [LARGE], ns=90_000.0)
    assert ask(ops=table(*mesh(fused))) == LIMIT.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ask(ops=table(op(GATHER))) == not_applicable("one device")
    other = table(op(GATHER), op("Matmul", device=1))
    assert ask(ops=other) == not_measured("devices ran different ops")


def test_all_reduces_gained_what_was_estimated() -> None:
    """The same layer, with scatters and gathers of bfloat16, then two all-reduces of bfloat8_b."""
    before, after = (
        region_of(*of)
        for of in (("falcon3_7b_tp4.csv", "multichip_decode"), ("falcon3_full.csv", "decode"))
    )
    estimated = ask.saving(before).ns
    # 46.3 + 28.0 µs of two pairs; 17.4 µs of two all-reduces.
    gained = 46_300 + 28_000 - 17_400
    assert estimated is not None
    assert 0.5 <= estimated / gained <= 2
    assert not any("AllReduce" in each.subject for each in ask(after).evidence)


def test_whole_numbers_and_places_keep_their_format() -> None:
    places = tensor(1, 1, 1024, 4096, dtype="UINT32")
    found = op("ArgMaxDeviceOperation", [SMALL], [places])
    cast = tensor(1, 1, 1024, 4096, dtype="FLOAT32")
    joined = tensor(1, 1, 2048, 4096, dtype="FLOAT32")
    values = tensor(1, 1, 1024, 4096, dtype="FLOAT32", memory="L1_INTERLEAVED")
    rows = [
        MATMUL,
        op("ReduceDeviceOperation", [SMALL], [values]),
        found,
        op("TypecastDeviceOperation", [places], [cast]),
        op("ConcatDeviceOperation", [values, cast], [joined]),
        op(GATHER, [joined], [joined], ns=110_000.0),
    ]
    assert ask(ops=table(*mesh(*rows))) == LIMIT.clean(0.0)
    assert ask(ops=table(*mesh(MATMUL, op(GATHER, [places], [places], ns=1e5)))) == LIMIT.clean(0.0)
    assert ask(ops=table(*mesh(MATMUL, rows[-1]))).value


def test_what_to_do_depends_on_what_was_found() -> None:
    pair = [op(SCATTER, [SMALL], [SMALL], ns=10_000.0), op(GATHER, [SMALL], [SMALL], ns=15_000.0)]
    assert ask.fix(ops=table(*mesh(MATMUL, *pair))) == (
        "Replace each reduce-scatter + all-gather pair with one `all_reduce_async` in L1."
    )
    wide = op(GATHER, [LARGE], [LARGE], ns=110_000.0)
    assert ask.fix(ops=table(*mesh(MATMUL, wide))) == ("Exchange bfloat8_b.")
