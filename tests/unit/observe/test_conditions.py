"""How a time is taken, as far as another version can be held to it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_ttnn_perf.measure.timing import Timings, Workload
from pytest_ttnn_perf.observe.conditions import ConditionLog, name_of
from pytest_ttnn_perf.observe.instruments import Plan

if TYPE_CHECKING:
    import pytest


class Device:
    def synchronize(self) -> None:
        self._wait()

    def _wait(self) -> None:
        self._poll()

    def _poll(self) -> None:
        """Wait for the chip."""


def test_what_a_synchronisation_calls_cannot_be_replaced_unseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = name_of(Device().synchronize)

    def nothing(self: Device) -> None:
        """Wait for nobody."""

    monkeypatch.setattr(nothing, "__module__", "model")
    monkeypatch.setattr(Device, "_poll", nothing)
    assert name_of(Device().synchronize).startswith(f"{usual} _poll=model.")


def test_an_output_that_cannot_be_read_is_nobodys_error() -> None:
    class Gone:
        shape, dtype = (2,), "bfloat16"

        def to_torch(self) -> object:
            message = "the buffer was deallocated"
            raise RuntimeError(message)

    log = ConditionLog(3)
    log.returns(Gone())
    log.refer("pcc", Gone(), Gone())
    assert log.finish(passed=True) == {}


def test_a_function_has_the_same_name_in_each_process() -> None:
    """Sets have another order in each, also among its constants."""
    code = (
        "from pytest_ttnn_perf.observe.conditions import name_of\n"
        "def sync(mode='host'):\n    return mode in {'host', 'device', 'both', 'none'}\n"
        "print(name_of(sync))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(names) == 1


def test_tensors_that_cannot_be_read_fail_no_test() -> None:
    class Sparse:
        shape, dtype = (2, 2), "float32"
        __module__ = "torch"
        device = "cpu"

        def detach(self) -> object:
            message = "Sparse layout has no numpy"
            raise RuntimeError(message)

    Sparse.__name__ = "Tensor"
    log = ConditionLog(0)
    log.add("wall_time", Workload(abs, (Sparse(),)), Plan(3, 10), Timings(), by_host=True)
    (conditions,) = log.finish(passed=True).values()
    assert conditions.content is None
    assert conditions.unknown == "it is not called again in the pass of a profiler"
