"""Calls with other inputs show what the measured calls cannot."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
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
    assert (found.reacts, found.sample_ns, found.new_input_ns) == (True, 100.0, 100.0)
    assert (found.pending_ratio, found.clock_ratio, found.threads) == (0.0, None, 0)
    assert len(found.outputs) == 4, "of its own input, and of three new ones"


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
    assert (found.reacts, found.new_input_ns) == (True, 300.0)


def test_calls_that_were_disturbed_are_tried_again() -> None:
    device, calls = Device(), iter(range(100))

    def model(x: Any) -> Any:
        device.pending += 400 * (next(calls) < 6)
        return device.compute(x)

    found = probed(device, model, X)
    assert (found.new_input_ns, len(found.outputs)) == (100.0, 4)


def test_a_synchronisation_that_does_not_wait() -> None:
    device = Device()
    found = probed(device, device.compute, X, sync=device.wait_for_half)
    assert found.pending_ratio is not None
    assert found.pending_ratio > 0.05


def test_another_device_that_nobody_waits_for() -> None:
    device, other = Device(), Device()

    def wait_for_all() -> None:
        other.wait()
        device.now += other.now
        other.now = 0

    workload = Workload(other.compute, (X,), sync=device.wait, clock=lambda: device.now)
    found = probe(workload, [100.0], by_host=False, wait_for_all=wait_for_all)
    assert found.pending_ratio == 1.0


def test_an_output_that_is_computed_when_it_is_read() -> None:
    device = Device()

    class Later:
        shape, dtype = X.shape, X.dtype

        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            return device.compute(X)

    found = probed(device, lambda _: Later(), X)
    assert found.new_input_ns == 100.0


def test_threads_that_go_on_after_a_call_and_those_that_wait_for_work() -> None:
    device, done = Device(), threading.Event()

    def model(x: Any) -> Any:
        threading.Thread(target=done.wait, args=(0.05,)).start()
        return device.compute(x)

    assert probed(device, model, X).threads == 3
    with ThreadPoolExecutor(1) as pool:
        assert probed(device, lambda x: pool.submit(device.compute, x).result(), X).threads == 0


def test_a_short_call_is_no_sign_of_another_clock() -> None:
    """What a probe does around a call is no part of what clocks are compared by."""
    found = probe(Workload(lambda x: x + 1, (np.ones(50_000),)), [20_000.0], by_host=True)
    assert found.clock_ratio is None or found.clock_ratio > 0.8


def test_calls_in_a_row_have_new_inputs_each() -> None:
    seen, device = set(), Device()

    def model(x: Any) -> Any:
        seen.add(x.tobytes())
        return device.compute(x)

    many = np.arange(1000.0)
    workload = Workload(model, (many,), sync=device.wait, clock=lambda: device.now)
    found = probe(workload, [100.0], by_host=False, tries=2, depth=4)
    assert (len(seen), found.new_input_ns) == (9, 100.0)
    other = probe(workload, [100.0], by_host=False, nonce=500)
    assert len(other.outputs.keys() & found.outputs.keys()) == 1, "nobody knows them before"


def test_what_is_padding_stays_in_one_piece() -> None:
    padded = np.zeros((32, 8))
    padded[:8] = 1 + np.arange(64).reshape(8, 8)
    rows: list[int] = []

    def model(x: Any) -> Any:
        rows.append(int(x.any(axis=1).sum()))
        return x * 2

    probed(Device(), model, padded)
    assert max(rows) <= 10


def test_inputs_of_a_set_up_are_changed_as_well() -> None:
    device = Device()
    assert probed(device, device.compute, setup=lambda: (X.copy(),)).reacts


@pytest.mark.parametrize(
    ("call", "args", "why"),
    [
        (lambda: X, (), "no input of it is an array on the host"),
        (lambda _: None, (X,), "its output cannot be read"),
        (lambda x: x, (np.zeros((1, 4), np.int32),), "no input of it can be changed"),
        (lambda x: x, (np.zeros((1, 4)),), "no input of it can be changed"),
    ],
)
def test_what_cannot_be_looked_at_is_said(
    call: Callable[..., Any], args: tuple[Any, ...], why: str
) -> None:
    found = probed(Device(), call, *args)
    assert (found.reacts, found.unknown) == (None, why)


def test_a_token_is_changed_to_another_that_there_is() -> None:
    seen: list[int] = []

    def model(token: Any) -> Any:
        seen.append(int(token[0, 0]))
        return token * 2.0

    found = probed(Device(), model, np.array([[5]]))
    assert found.reacts
    assert len(set(seen)) > 1
    assert set(seen) <= set(range(6))


def test_what_is_pending_after_a_block_is_a_part_of_the_block() -> None:
    now_ns = 0.0

    def call(x: Any) -> Any:
        nonlocal now_ns
        now_ns += 100.0
        return x * 2

    def wait_for_all() -> None:
        nonlocal now_ns
        now_ns += 40.0

    workload = Workload(call, (X,), clock=lambda: now_ns)
    found = probe(workload, [100.0], by_host=False, depth=4, wait_for_all=wait_for_all)
    assert found.pending_ratio == pytest.approx(0.1)


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
