from __future__ import annotations

from tests.rules.answers import Ask, Evidence, clean, limit
from tests.rules.tables import on_host, op, table

ask = Ask("TTP007")
LIMIT = limit(0, "ops")
MATMUL = op("MatmulDeviceOperation")


def test_ops_on_the_host() -> None:
    fallbacks = [on_host(f"(torch) {name}") for name in ("cat", "squeeze", "cat")]
    assert ask(ops=table(MATMUL, *fallbacks, MATMUL)) == LIMIT.found(
        3,
        "3 ops ran on the host, between ops on the device",
        [
            Evidence("2 x (torch) cat", 2, "ops"),
            Evidence("(torch) squeeze", 1, "ops"),
        ],
    )


def test_ops_on_the_device_only() -> None:
    assert ask(ops=table(MATMUL)) == LIMIT.clean(0)


def test_what_comes_before_the_first_and_after_the_last_op_is_clean() -> None:
    ops = table(on_host("(torch) cat"), MATMUL, MATMUL, on_host("(torch) squeeze"))
    assert ask(ops=ops) == LIMIT.clean(0)


def test_as_many_as_allowed_are_clean() -> None:
    ops = table(MATMUL, on_host("(torch) cat"), MATMUL)
    assert ask.with_limits(most=1)(ops=ops) == clean(1, limit=1, unit="ops")
