"""What rules share: worked out once per table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.core.finding import Subject
from tests.analysis.rules.tables import Op, OpTable, on_host, op, table, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


SMALL, LARGE = tensor(1, 1, 32, 32), tensor(1, 1, 64, 64)


def small_table() -> OpTable:
    return table(
        op("MatmulDeviceOperation", [SMALL, SMALL], [LARGE]),
        on_host("(torch) argmax"),
        op("UnaryDeviceOperation", [LARGE], [LARGE], ns=10.0),
        op("MatmulDeviceOperation", [SMALL, SMALL], [LARGE]),
    )


def test_all_rules_together_read_the_rows_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    through = OpTable.__iter__

    def counting(self: OpTable) -> Iterator[Op]:
        nonlocal reads
        reads += 1
        return through(self)

    monkeypatch.setattr(OpTable, "__iter__", counting)
    subject = Subject(ops=small_table())
    run_rules(all_rules(), subject)
    bottleneck_of(subject, {})
    assert reads <= 1
