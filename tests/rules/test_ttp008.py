"""Durations that are all alike were not measured."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_applicable
from tests.rules.tables import on_host, op, table

ask = Ask("TTP008")
LIMIT = limit(0.9, "of the ops")


def test_ops_of_different_kinds_took_the_same_time() -> None:
    rows = [op(code, ns=1000) for code in ("Matmul", "Slice") for _ in range(5)]
    assert ask(ops=table(*rows, on_host("(torch) cat"))) == LIMIT.found(
        1.0,
        "100.0 % of 10 ops took exactly the same time: not measured",
        [Evidence("the time of each", 1000.0, "ns")],
    )


def test_some_of_them_did() -> None:
    rows = [op(code, ns=1000) for code in ("Matmul", "Slice") for _ in range(4)]
    assert ask(ops=table(*rows, op("Add", ns=900), op("Add", ns=901))) == LIMIT.clean(0.8)


def test_nothing_follows_from_few_ops_or_from_one_kind() -> None:
    few = table(*[op(code) for code in ("Matmul", "Slice", "Add")])
    assert ask(ops=few) == not_applicable("fewer than 8 ops, or all of one kind")
    one_kind = table(*[op("Slice")] * 40)
    assert ask(ops=one_kind) == not_applicable("fewer than 8 ops, or all of one kind")
