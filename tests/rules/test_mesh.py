"""Rules on several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.hardware import Hardware
from tests.rules.answers import Ask, Subject, limit, not_applicable, not_measured
from tests.rules.observations import Observation
from tests.rules.reports import COPY, NO_DATA_PARALLELISM, Operation, linear, placed, report
from tests.rules.tables import Op, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar


ttp701 = Ask("TTP701")


LIMIT = limit(0, "samples")


LEFT_OVER = LIMIT.found(2, "a batch of 10 among 4 devices leaves 2 over")


def test_all_devices_share() -> None:
    facts: dict[str, Scalar] = {"data_parallel": True, "batch": 10}
    ops = table(*(op("Matmul", device=device) for device in range(4)))
    assert ttp701(ops=ops, facts=facts) == LEFT_OVER
    opened = Observation("test_it", hardware=Hardware("wormhole_b0", "t3k", "2x2"))
    assert ttp701(observation=opened, facts=facts) == LEFT_OVER
    assert ttp701(facts=facts) == not_measured("it is not known how many devices share the batch")


ttp702 = Ask("TTP702")


LIMIT_702 = limit(0, "weights")


CUT = placed("2", "PlacementShard(3)")


def test_a_mesh_of_one_device_cuts_nothing() -> None:
    one = report([linear(1, placed("1", COPY), placed("1", "PlacementShard(3)"))])
    assert ttp702(Subject(report=one, facts={"data_parallel": 2})) == LIMIT_702.clean(0)


def test_inputs_that_do_not_tell() -> None:
    assert ttp702(facts={"batch": 8}) == not_applicable(NO_DATA_PARALLELISM)
    assert ttp702(report=report([linear(1, CUT, CUT)])) == not_applicable(NO_DATA_PARALLELISM)
    parallel = {"data_parallel": 2}
    assert ttp702(facts=parallel) == not_measured("needs a report database")
    silent = Subject(report=report([Operation(1, "ttnn.linear")]), facts=parallel)
    assert ttp702(silent) == not_measured(
        "the report does not say how weights are placed on the mesh"
    )


ttp703 = Ask("TTP703")


LIMIT_703 = limit(0.02, "of a step")


#: 8 MiB: too much for one all-reduce in L1.
LARGE, SMALL = tensor(1, 1, 1024, 4096), tensor(1, 1, 32, 4096)


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


def test_what_to_do_depends_on_what_was_found() -> None:
    pair = [op(SCATTER, [SMALL], [SMALL], ns=10_000.0), op(GATHER, [SMALL], [SMALL], ns=15_000.0)]
    assert ttp703.fix(ops=table(*mesh(MATMUL, *pair))) == (
        "Replace each reduce-scatter + all-gather pair with one `all_reduce_async` in L1."
    )
    wide = op(GATHER, [LARGE], [LARGE], ns=110_000.0)
    assert ttp703.fix(ops=table(*mesh(MATMUL, wide))) == ("Exchange bfloat8_b.")


ttp704 = Ask("TTP704")


LIMIT_704 = limit(0.02, "of a step")


#: In a collective the faster device waits: its time says nothing.
WAIT = op("AllReduceDeviceOperation", ns=1000.0)


def test_devices_in_step() -> None:
    rows = (op("Matmul", ns=50.0), WAIT)
    ops = table(*rows, *(row._replace(device=1) for row in rows))
    assert ttp704(ops=ops) == LIMIT_704.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ttp704(ops=table(op("Matmul"))) == not_applicable("one device")
    waiting = Subject(ops=table(WAIT, WAIT._replace(device=1)))
    assert ttp704(waiting) == not_measured("no device ran anything but collectives")
    other = table(op("Matmul"), op("Unary", device=1))
    assert ttp704(ops=other) == not_measured("devices ran different ops")
