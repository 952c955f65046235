"""Times of devices."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp704_device_imbalance import device_imbalance
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import on_host, op, table

UNIT = "above the mean"
#: In a collective the faster device waits: its time says nothing.
WAIT = op("AllReduceDeviceOperation", ns=1000.0)


def test_one_device_works_longer() -> None:
    ops = table(
        op("Matmul", ns=50.0), WAIT, op("Matmul", ns=150.0, device=3), on_host("(torch) cat")
    )
    assert ask(device_imbalance, Subject(ops=ops)) == found(
        "device 3 works 50.0 % longer than the mean of 2 devices",
        value=0.5,
        limit=0.05,
        unit=UNIT,
        evidence=[Evidence("device 3", 150.0, "ns"), Evidence("device 0", 50.0, "ns")],
    )
    half = device_imbalance.with_limits(excess=0.5)
    assert ask(half, Subject(ops=ops)) == clean(0.5, limit=0.5, unit=UNIT)


def test_devices_in_step() -> None:
    ops = table(op("Matmul", ns=50.0), WAIT, op("Matmul", ns=50.0, device=1))
    assert ask(device_imbalance, Subject(ops=ops)) == clean(0.0, limit=0.05, unit=UNIT)


def test_nothing_to_look_at() -> None:
    assert ask(device_imbalance, Subject()) == not_measured("needs an op table")
    assert ask(device_imbalance, Subject(ops=table(op("Matmul")))) == not_applicable("one device")
    waiting = Subject(ops=table(WAIT, WAIT._replace(device=1)))
    assert ask(device_imbalance, waiting) == not_measured("no device ran anything but collectives")
