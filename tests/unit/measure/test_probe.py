"""Calls with other inputs show what the measured calls cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pytest_ttnn_perf.measure.probe import content_of, probe, shapes_of
from pytest_ttnn_perf.measure.timing import Workload

if TYPE_CHECKING:
    from collections.abc import Callable


class Device:
    """Counts 100 ns for each call that computes, when it is waited for."""

    def __init__(self) -> None:
        self.now = self.pending = 0

    def compute(self, x: Any) -> Any:
        self.pending += 100
        return x * 2

    def wait(self) -> None:
        self.now, self.pending = self.now + self.pending, 0

    def wait_for_half(self) -> None:
        self.now, self.pending = self.now + self.pending // 2, self.pending - self.pending // 2


def probed(device: Device, call: Callable[..., Any], *args: Any, **surroundings: Any) -> Any:
    given = {"sync": device.wait, **surroundings}
    return probe(Workload(call, args, clock=lambda: device.now, **given), [100.0], by_host=False)


X = np.arange(12.0).reshape(3, 4)


def test_an_honest_model() -> None:
    device = Device()
    found = probed(device, device.compute, X)
    assert found == (True, 1.0, 0.0, None, None)


@pytest.mark.parametrize("x", [np.ones((3, 4)), np.zeros((3, 4)) + 2, np.arange(12)])
def test_inputs_that_are_all_alike_or_whole_are_changed_too(x: Any) -> None:
    device = Device()
    assert probed(device, device.compute, x).reacts


def test_a_model_that_keeps_its_first_result() -> None:
    device = Device()
    kept: Any = X * 2
    assert probed(device, lambda x: (device.compute(x), kept)[1], X).reacts is False


def test_a_model_that_keeps_results_by_input() -> None:
    device = Device()
    known: dict[bytes, Any] = {X.tobytes(): X * 2}

    def model(x: Any) -> Any:
        key = x.tobytes()
        if key not in known:
            known[key] = device.compute(device.compute(device.compute(x)))
        return known[key]

    found = probed(device, model, X)
    assert (found.reacts, found.new_input_ratio) == (True, 3.0)


def test_a_synchronisation_that_does_not_wait() -> None:
    device = Device()
    found = probed(device, device.compute, X, sync=device.wait_for_half)
    assert found.pending_ratio is not None
    assert found.pending_ratio > 0.05


def test_inputs_of_a_set_up_are_changed_as_well() -> None:
    device = Device()
    assert probed(device, device.compute, setup=lambda: (X.copy(),)).reacts


@pytest.mark.parametrize(
    ("call", "args", "why"),
    [
        (lambda: X, (), "no input of it is an array on the host"),
        (lambda _: None, (X,), "its output cannot be read"),
    ],
)
def test_what_cannot_be_looked_at_is_said(
    call: Callable[..., Any], args: tuple[Any, ...], why: str
) -> None:
    found = probed(Device(), call, *args)
    assert (found.reacts, found.unknown) == (None, why)


def test_a_clock_that_shows_too_little() -> None:
    ticks = iter(range(10**6))
    slow = Workload(lambda x: sum(range(200_000)) + x, (X,), clock=lambda: next(ticks))
    found = probe(slow, [5e6], by_host=True)
    assert found.clock_ratio is not None
    assert found.clock_ratio < 0.8


def test_shapes_and_contents() -> None:
    workload = Workload(abs, (X, [X.T]), {"y": 3})
    assert shapes_of(workload) == ("3x4", "4x3")
    assert content_of((X, "other")) == content_of([X.copy()]) != content_of([X + 1])
    assert content_of(("nothing",)) is None
