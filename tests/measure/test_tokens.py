"""When the clock is read while tokens come: after the device is done, and only then."""

from __future__ import annotations

from contextlib import nullcontext

from pytest_ttnn_perf.measure.tokens import TokenLog, TokenMarks, conditions_of


class Device:
    """Has done its work only once it is waited for, 7 ns for each step that was started."""

    def __init__(self) -> None:
        self.now_ns, self.started, self.waited = 0.0, 0, 0

    def start(self) -> None:
        self.started += 1

    def wait(self) -> None:
        self.now_ns += 7 * self.started
        self.started = 0
        self.waited += 1


def test_every_mark_waits_for_the_device() -> None:
    device, log = Device(), TokenLog()
    device.start()  # what was started before is not part of the first token
    marks = TokenMarks(conditions_of("token_out", 1, 8), device.wait, lambda: device.now_ns)
    with log.marks(marks, nullcontext(), warmup=False, compile_steps=0) as tokens:
        device.start()
        device.start()
        tokens.first()
        device.start()
        tokens.step()
    (generation,) = log.generations
    assert (generation.first_ns, generation.steps_ns) == (14, (7,))
