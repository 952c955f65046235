"""Times of devices."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.tables import on_host, op, table

ask = Ask("TTP704")
LIMIT = limit(0.05, "above the mean")
#: In a collective the faster device waits: its time says nothing.
WAIT = op("AllReduceDeviceOperation", ns=1000.0)


def test_one_device_works_longer() -> None:
    ops = table(
        op("Matmul", ns=50.0), WAIT, op("Matmul", ns=150.0, device=3), on_host("(torch) cat")
    )
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "device 3 works 50.0 % longer than the mean of 2 devices",
        [Evidence("device 3", 150.0, "ns"), Evidence("device 0", 50.0, "ns")],
    )
    assert ask.with_limits(excess=0.5)(ops=ops) == clean(0.5, limit=0.5, unit=LIMIT.unit)


def test_devices_in_step() -> None:
    ops = table(op("Matmul", ns=50.0), WAIT, op("Matmul", ns=50.0, device=1))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ask(ops=table(op("Matmul"))) == not_applicable("one device")
    waiting = Subject(ops=table(WAIT, WAIT._replace(device=1)))
    assert ask(waiting) == not_measured("no device ran anything but collectives")
