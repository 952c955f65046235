"""Rules on cores, data movement and unexplained time."""

from __future__ import annotations

import pytest

from tests.analysis.rules.answers import Ask
from tests.analysis.rules.captures import region_of
from tests.analysis.rules.cases import FOUND, Case, of_cases, of_ops
from tests.analysis.rules.tables import Op, op, tensor

#: 64 tiles.
WIDE = tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")
#: 64 rows: for up to 32, DRAM-sharded weights are another way.
TALL = tensor(1, 1, 64, 2048, memory="L1_INTERLEAVED")
VOCABULARY = tensor(1, 1, 32, 32768, memory="L1_INTERLEAVED")
PICKED = tensor(1, 1, 32, 32)


def on_one_core(code: str, ns: float, *inputs: object, given: object = WIDE) -> Op:
    return op(code, inputs or [WIDE], [given], ns=ns, cores=1)  # type: ignore[arg-type,list-item]


def searched(code: str) -> tuple[Op, Op]:
    matmul = op("MatmulDeviceOperation", [PICKED], [PICKED], ns=100_000.0)
    return matmul, on_one_core(f"{code}DeviceOperation", 640_000.0, VOCABULARY, given=PICKED)


def experts() -> list[Op]:
    """A router that chooses 4 of 32 experts for a token, and a matmul over all of them."""
    hidden = tensor(1, 1, 32, 512, logical=(1, 1, 1, 512))
    scores, best = (tensor(1, 1, 32, 32, logical=(1, 1, 1, many)) for many in (32, 4))
    apart = tensor(1, 32, 32, 512, logical=(1, 32, 1, 512))
    return [
        op("MatmulDeviceOperation", [hidden, tensor(1, 1, 512, 32)], [scores], ns=10_000.0),
        op("TopKDeviceOperation", [scores], [scores], ns=5_000.0),
        op("SoftmaxDeviceOperation", [best], [best], ns=5_000.0),
        op("MatmulDeviceOperation", [apart, tensor(1, 32, 512, 512)], [apart], ns=80_000.0),
    ]


CASES = [
    # No op gets shorter than launching or reading takes; norms need moves to shards.
    Case("TTP305", of_ops(on_one_core("BinaryNg", 10_000.0)), FOUND, 0.78, 7_800.0),
    Case("TTP305", of_ops(on_one_core("LayerNorm", 20_000.0)), FOUND, None, 20_000 - 7_000 - 2_500),
    *(
        Case(
            "TTP305",
            of_ops(on_one_core("Matmul", 200_000.0, TALL, weights, given=TALL)),
            FOUND,
            None,
            200_000 - size * 2048**2 / 288 / part - 4_500,
        )
        for dtype, size, part in (("BFLOAT16", 2.0, 0.75), ("BFLOAT8_B", 1.0625, 0.6))
        for weights in [tensor(1, 1, 2048, 2048, dtype=dtype)]
    ),
    Case("TTP308", of_ops(*searched("Reduce")), FOUND, 63 / 74, 630_000.0, "on 1 of 64 cores"),
    *(
        Case("TTP308", of_ops(*searched(code)), FOUND, 63 / 74, 630_000.0, "sampling is 86.5 %")
        for code in ("ArgMax", "TopK", "Sort")
    ),
    Case(
        "TTP320",
        of_ops(*experts()),
        FOUND,
        None,
        (32 * 512**2 + 64 * 32 * 512) * 2 / 288 * 7 / 8,
        "1 token hits",
    ),
]


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


def test_shards_on_more_cores_gained_what_was_estimated() -> None:
    """A multiply on shards of 8 cores, then of 24: of 13.8 µs, 8.7 µs were gained."""
    before, after = (
        {
            each.subject.partition(" on ")[2]: each.value
            for each in Ask("TTP305")(region_of(name)).evidence
        }
        for name in ("gemma_sliding_decode_replicated_v1.csv", "gemma_sliding_decode_final.csv")
    )
    estimated = before["shards of 8 of 84 cores"]
    assert "shards of 8 of 84 cores" not in after
    assert estimated is not None
    assert estimated / (13_842.0 - 5_177.0) == pytest.approx(1, abs=0.5)
