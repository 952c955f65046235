"""How a time is taken, as far as another version can be held to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.observe.conditions import ConditionLog, name_of

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
