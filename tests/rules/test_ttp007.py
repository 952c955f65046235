from __future__ import annotations

from tests.rules.answers import Ask, Evidence, clean, limit
from tests.rules.tables import on_host, op, table

ask = Ask("TTP007")
LIMIT = limit(0, "ops")
MATMUL = op("MatmulDeviceOperation")


def test_ops_on_the_host() -> None:
    ops = table(MATMUL, on_host("(torch) cat"), on_host("(torch) squeeze"), on_host("(torch) cat"))
    assert ask(ops=ops) == LIMIT.found(
        3,
        "3 ops ran on the host",
        [
            Evidence("2 x (torch) cat", 2, "ops"),
            Evidence("(torch) squeeze", 1, "ops"),
        ],
    )


def test_ops_on_the_device_only() -> None:
    assert ask(ops=table(MATMUL)) == LIMIT.clean(0)


def test_as_many_as_allowed_are_clean() -> None:
    ops = table(MATMUL, on_host("(torch) cat"))
    assert ask.with_limits(most=1)(ops=ops) == clean(1, limit=1, unit="ops")
