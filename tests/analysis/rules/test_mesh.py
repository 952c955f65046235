"""Rules on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from tests.analysis.rules.answers import Ask, Subject, clean, limit, not_measured
from tests.analysis.rules.observations import Observation
from tests.analysis.rules.reports import COPY, linear, placed, report
from tests.analysis.rules.tables import Op, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar


ttp701 = Ask("TTP701")
LIMIT = limit(0, "samples")
LEFT_OVER = LIMIT.found(2, "a batch of 10 among 4 devices leaves 2 over")


@pytest.mark.parametrize("name", ["batch", "batch_size"])
@pytest.mark.parametrize("ways", [4, "4"])
def test_samples_left_over(name: str, ways: Scalar) -> None:
    asked = Subject(facts={"data_parallel": ways, name: 10})
    assert ttp701(asked) == LEFT_OVER
    assert ttp701.with_limits(left_over=2)(asked) == clean(2, limit=2, unit="samples")


def test_all_devices_share() -> None:
    facts: dict[str, Scalar] = {"data_parallel": True, "batch": 10}
    ops = table(*(op("Matmul", device=device) for device in range(4)))
    assert ttp701(ops=ops, facts=facts) == LEFT_OVER
    opened = Observation("test_it", hardware=Hardware("wormhole_b0", "t3k", "2x2"))
    assert ttp701(observation=opened, facts=facts) == LEFT_OVER
    assert ttp701(facts=facts) == not_measured("it is not known how many devices share the batch")


ttp702 = Ask("TTP702")
LIMIT_702 = limit(0, "weights")


def test_a_mesh_of_one_device_cuts_nothing() -> None:
    one = report([linear(1, placed("1", COPY), placed("1", "PlacementShard(3)"))])
    assert ttp702(Subject(report=one, facts={"data_parallel": 2})) == LIMIT_702.clean(0)


ttp703 = Ask("TTP703")
LIMIT_703 = limit(0.02, "of a step")
SMALL = tensor(1, 1, 32, 4096)
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


def test_short_exchanges_are_clean() -> None:
    ops = table(*mesh(MATMUL, op(GATHER, [SMALL], [SMALL], ns=10_000.0)))
    assert ttp703(ops=ops) == LIMIT_703.clean(0.0)
