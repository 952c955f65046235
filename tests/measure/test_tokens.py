"""When the clock is read while tokens come: after the device is done, and only then."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.settings import Settings, TestSettings
from pytest_ttnn_perf.measure.instruments import Instruments
from pytest_ttnn_perf.measure.observer import Observer
from pytest_ttnn_perf.measure.tokens import TokenLog, TokenMarks, conditions_of

if TYPE_CHECKING:
    from collections.abc import Callable


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


class Beside(Instruments):
    """Instruments beside that device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    def sync(self) -> Callable[[], object]:  # type: ignore[override]
        return self.device.wait


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


@pytest.mark.parametrize(("mode", "waited"), [("token_out", 2), ("serving", 0)])
def test_the_devices_that_are_open_are_waited_for_unless_a_server_has_them(
    mode: str, waited: int
) -> None:
    device = Device()
    observer = Observer("t", TestSettings(3, 10, 0.99), Settings(), instruments=Beside(device))
    with observer.tokens(mode=mode, prompt_tokens=8) as tokens:
        tokens.first()
    assert device.waited == waited


def test_a_generation_that_raises_counts_for_nothing() -> None:
    log = TokenLog()
    marks = TokenMarks(conditions_of("token_out", 1, 8), None, lambda: 0.0)

    def generate() -> None:
        with log.marks(marks, nullcontext(), warmup=False, compile_steps=0) as tokens:
            tokens.first()
            raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        generate()
    assert log.generations == []
