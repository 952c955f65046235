"""Ops that ran and have no time."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.core.ops import Unread
from tests.rules.answers import Ask, Evidence, limit
from tests.rules.tables import op, table

ask = Ask("TTP010")
LIMIT = limit(0, "ops")


def test_ops_without_a_time() -> None:
    lost = (Unread(9, "impossible gap"), Unread(7, "impossible gap"), Unread(12, "no time"))
    assert ask(ops=replace(table(op("Matmul")), unread=lost)) == LIMIT.found(
        3,
        "3 of 4 device ops have an impossible gap (2) or no time (1), first in line 7",
        [Evidence("impossible gap", 2, "ops"), Evidence("no time", 1, "ops")],
    )


def test_all_have_one() -> None:
    assert ask(ops=table(op("Matmul"))) == LIMIT.clean(0)
