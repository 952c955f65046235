"""Time that no other rule explains."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.finding import RuleOutcome, Severity
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.captures import ops_of
from tests.rules.tables import Op, op, table, tensor

LIMIT = limit(0.15, "of a step")
#: 8 MiB in DRAM: 29.1 µs at 288 GB/s, and as much to write it again.
WIDE = tensor(1, 1, 2048, 2048)
IN_L1 = tensor(1, 1, 2048, 2048, memory="L1_INTERLEAVED")


def ask(*rows: Op, claimed: dict[int, float] | None = None) -> object:
    subject = Subject(ops=table(*rows), claimed={} if claimed is None else claimed)
    return rule_of("TTP315").check(subject)


def norm(ns: float) -> Op:
    return op("GroupNormDeviceOperation", [WIDE], [WIDE], ns=ns)


def other(ns: float) -> Op:
    return op("UnaryDeviceOperation", [WIDE], [WIDE], ns=ns)


def test_ops_far_from_their_roofline_that_no_rule_names() -> None:
    assert ask(norm(400_000.0), norm(400_000.0), other(200_000.0)) == LIMIT.found(
        0.8,
        "GroupNorm takes 80.0 % of a step (at 14.6 % of the DRAM bandwidth); no other rule "
        "explains it",
        [Evidence("2 x GroupNorm 1x1x2048x2048", 800_000.0, "ns", 0.8)],
    )


def test_what_cannot_be_modelled_is_told_as_such() -> None:
    sample = op("GridSampleOperation", [IN_L1], [IN_L1], ns=60_000.0)
    sparse = op("SparseMatmulDeviceOperation", [WIDE, WIDE], [WIDE], ns=30_000.0)
    answer = ask(sample, sparse, other(60_000.0))
    assert answer == LIMIT.found(
        0.6,
        "GridSample takes 40.0 % of a step (it has no roofline model), SparseMatmul 20.0 % (it "
        "has no roofline model); no other rule explains them",
        [
            Evidence("GridSample 1x1x2048x2048", 60_000.0, "ns", 0.4),
            Evidence("SparseMatmul 1x1x2048x2048 @ 2048x2048", 30_000.0, "ns", 0.2),
        ],
    )


@pytest.mark.parametrize(
    ("rows", "claimed"),
    [
        ([norm(230_000.0), other(60_000.0)], {}),  # less than four times as long
        ([norm(100_000.0), *(other(60_000.0) for _ in range(10))], {}),  # 14 % of the step
        ([norm(400_000.0), other(60_000.0)], {0: 40_000.0}),  # another rule saves a tenth of it
        ([op("AllGatherAsync", [WIDE], [WIDE], ns=400_000.0), other(60_000.0)], {}),
        ([op("SliceDeviceOperation", [IN_L1], [IN_L1], ns=400_000.0), other(60_000.0)], {}),
        ([op("TilizeDeviceOperation", [WIDE], [WIDE], ns=900_000.0), other(60_000.0)], {}),
    ],
    ids=["near its roofline", "short", "explained", "collective", "movement", "layout"],
)
def test_what_needs_no_explanation(rows: list[Op], claimed: dict[int, float]) -> None:
    assert ask(*rows, claimed=claimed) == LIMIT.clean(0.0)


def test_a_short_step_is_mostly_launching() -> None:
    sample = op("GridSampleOperation", [IN_L1], [IN_L1], ns=12_900.0)
    assert ask(sample) == not_applicable("a step takes 12.9 µs only")


def test_what_a_capture_does_not_tell_explains_nothing() -> None:
    without_cores = op("GridSampleOperation", [IN_L1], [IN_L1], ns=60_000.0, cores=None)
    assert ask(without_cores) == not_measured("the capture does not give the cores of ops")
    padded = IN_L1._replace(logical=None)
    assert ask(op("GridSampleOperation", [padded], [padded], ns=60_000.0)) == not_measured(
        "the capture does not say how much of its tensors is padding"
    )


def test_asked_alone_it_knows_nothing_of_the_others() -> None:
    assert Ask("TTP315")(ops=table(norm(400_000.0))) == not_measured(
        "it looks at what other rules leave: ask them as well"
    )


def test_it_is_told_although_it_saves_nothing() -> None:
    rules = [rule_of(code) for code in ("TTP303", "TTP315")]
    _, found = run_rules(rules, Subject(ops=table(norm(900_000.0), other(60_000.0))))
    assert (found.severity, found.outcome) == (Severity.INFO, RuleOutcome.FOUND)
    assert (found.saving_ns, found.quiet) == (None, False)


def test_experts_of_a_real_model() -> None:
    name = "north_mini_moe_rope_decode_b1_trace.csv"
    answer = rule_of("TTP315").check(replace(ops_of(name), claimed={}))
    assert answer.outcome is RuleOutcome.FOUND
    assert answer.value is not None
    assert answer.value > 0.5
    assert answer.reason == (
        "SparseMatmul takes 57.3 % of a step; it has no roofline model and no other rule explains "
        "it"
    )
