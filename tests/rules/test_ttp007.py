from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp007_host_fallback import host_fallback
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import on_host, op, table

RULE = host_fallback
MATMUL = op("MatmulDeviceOperation")


def test_ops_on_the_host() -> None:
    ops = table(MATMUL, on_host("(torch) cat"), on_host("(torch) squeeze"), on_host("(torch) cat"))
    assert ask(RULE, Subject(ops=ops)) == found(
        "3 ops ran on the host",
        value=3,
        limit=0,
        unit="ops",
        evidence=[
            Evidence("2 x (torch) cat", 2, "ops"),
            Evidence("(torch) squeeze", 1, "ops"),
        ],
    )


def test_ops_on_the_device_only() -> None:
    assert ask(RULE, Subject(ops=table(MATMUL))) == clean(0, limit=0, unit="ops")


def test_as_many_as_allowed_are_clean() -> None:
    ops = table(MATMUL, on_host("(torch) cat"))
    assert ask(host_fallback.with_limits(most=1), Subject(ops=ops)) == clean(1, limit=1, unit="ops")


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs an op table")
