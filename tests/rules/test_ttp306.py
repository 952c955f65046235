"""Cores that work longer than others."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from tests.harness.corpus import corpus
from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP306")
LIMIT = limit(0.02, "of a step")
INPUT = tensor(1, 1, 32, 64)
EVEN = op("Conv2dDeviceOperation", [INPUT], ns=90_000.0, per_core_ns=(80_000.0, 89_000.0))
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(per_core_M=1)'}"
)
UNTOLD = "the capture does not give times per core"


def test_one_core_does_the_work_of_others() -> None:
    rows = [
        EVEN,
        op("ReshapeDeviceOperation", [INPUT], ns=6_000.0, per_core_ns=(1_000.0, 5_900.0)),
        op("HaloDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(0.0, 9_900.0)),
        op("HaloDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(4_000.0, 9_900.0)),
        op("SliceDeviceOperation", [INPUT], ns=10_000.0, per_core_ns=(4_950.0, 9_900.0)),
    ]
    assert ask(ops=table(*rows)) == LIMIT.found(
        10_350 / 126_000,
        "uneven cores in 3 of 5 ops: one works more than 2 times as long as another",
        [
            Evidence("2 x Halo 1x1x32x64", 7_900.0, "ns", 7.9 / 126),
            Evidence("Reshape 1x1x32x64", 2_450.0, "ns", 2.45 / 126),
        ],
    )
    assert ask.saving(ops=table(*rows)) == (
        10_350.0,
        "half of what the slowest core takes longer than the fastest, in 3 ops: 10.3 µs",
    )


@pytest.mark.parametrize(
    ("other", "share"),
    [
        (op("Halo", ns=10_000.0, per_core_ns=(5_000.0, 10_000.0)), 0.0),  # twice is not more
        (op("Halo", ns=10_000.0, per_core_ns=(0.0, 0.0)), 0.0),
        (op("Halo", ns=10_000.0), 0.0),  # not told of this op
        (op("Halo", ns=10_000.0, per_core_ns=(None, 10_000.0)), 0.0),
        (op("MatmulDeviceOperation", ns=10_000.0, attributes=SHARDED, per_core_ns=(1, 9_000)), 0.0),
        (op("AllGatherDeviceOperation", ns=10_000.0, per_core_ns=(1.0, 9_000.0)), 0.0),
        (op("Halo", ns=4_999.0, per_core_ns=(1.0, 4_999.0)), 0.0),
    ],
    ids=["limit", "idle", "unknown", "half told", "DRAM-sharded", "collective", "short"],
)
def test_what_does_not_count(other: Op, share: float) -> None:
    ops = table(EVEN, other)
    assert ask.with_limits(share=0.0)(ops=ops) == clean(share, limit=0.0, unit=LIMIT.unit)


def test_the_limit_itself_is_clean() -> None:
    ops = table(EVEN, op("Halo", ns=10_000.0, per_core_ns=(1_000.0, 9_000.0)))
    assert ask.with_limits(share=0.04)(ops=ops) == clean(0.04, limit=0.04, unit=LIMIT.unit)
    assert ask.with_limits(share=0.039)(ops=ops).value == 0.04


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Halo", ns=9_000.0))) == not_measured(UNTOLD)
    short = table(op("Halo", ns=10.0, per_core_ns=(5.0, 9.0)))
    assert ask(ops=short) == not_applicable("no op of 5 µs or more that is to be counted")
    other = table(op("Halo", ns=9_000.0), op("Halo", ns=10.0, per_core_ns=(5.0, 9.0)))
    assert ask(ops=other) == not_measured(f"{UNTOLD} of ops that count")


def test_a_real_capture_that_tells() -> None:
    table = read_ops_csv(corpus("ops_perf/oft_2025_09_v2.csv"))
    worst = max(table, key=lambda row: (row.core_max_ns or 0) / (row.core_min_ns or 1))
    assert (worst.signature.op, worst.core_min_ns, worst.core_max_ns) == (
        "ReshapeDeviceOperation",
        162.0,
        162_921.0,
    )
    head = region_of("oft_2025_09_v2.csv", "head")
    evidence = ask(head).evidence[0]
    assert (evidence.subject, evidence.value) == ("Reshape 1x1x9x25281", (162_921 - 162) / 2)


def test_a_real_capture_whose_columns_are_empty() -> None:
    table = read_ops_csv(corpus("ops_perf/blackhole_oft_conv.csv"))
    assert (table.columns.core_min_ns, table.columns.core_max_ns) == ((), ())
    assert ask(ops=table) == not_measured(UNTOLD)
