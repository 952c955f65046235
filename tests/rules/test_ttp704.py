"""Times of devices."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.captures import region_of
from tests.rules.tables import on_host, op, table

ask = Ask("TTP704")
LIMIT = limit(0.02, "of a step")
#: In a collective the faster device waits: its time says nothing.
WAIT = op("AllReduceDeviceOperation", ns=1000.0)


def test_one_device_works_longer() -> None:
    rows = [
        op("Matmul", ns=50.0),
        op("Unary", ns=30.0),
        WAIT._replace(kernel_ns=120.0),
        op("Matmul", ns=150.0, device=3),
        op("Unary", ns=30.0, device=3),
        WAIT._replace(kernel_ns=20.0, device=3),
        on_host("(torch) cat"),
    ]
    for ops in (table(*rows), table(*rows[3:], *rows[:3])):
        assert ask(ops=ops) == LIMIT.found(
            0.25,
            "device 3 computes 0.2 µs, 38.5 % longer than the mean of 2 devices",
            [Evidence("Matmul on device 3", 50.0, "ns", 0.25)],
        )
        assert ask.saving(ops=ops) == (50.0, "device 3 − mean of 2: 0.2 µs − 0.1 µs")
        assert ask.with_limits(excess=0.25)(ops=ops) == clean(0.25, limit=0.25, unit=LIMIT.unit)


def test_devices_in_step() -> None:
    rows = (op("Matmul", ns=50.0), WAIT)
    ops = table(*rows, *(row._replace(device=1) for row in rows))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ask(ops=table(op("Matmul"))) == not_applicable("one device")
    waiting = Subject(ops=table(WAIT, WAIT._replace(device=1)))
    assert ask(waiting) == not_measured("no device ran anything but collectives")
    other = table(op("Matmul"), op("Unary", device=1))
    assert ask(ops=other) == not_measured("devices ran different ops")


def test_the_op_that_makes_a_real_device_late_is_named() -> None:
    capture = region_of("blackhole_deepseek_8dev.csv")
    answer = ask(capture)
    assert answer.evidence[0].subject == (
        "RingJointSDPA 1x32x3200x576 (is_causal=true, is_balanced=false) on device 7"
    )
    assert (answer.reason or "").startswith("devices 4, 5, 6 and 7 compute up to 10,119.4 µs")
    assert (ask.fix(capture) or "").startswith("Set `is_balanced=True`")
