"""The fixture in a run without the gate: a functional test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._support.errors import AccuracyError
from pytest_ttnn_perf.model.metric import WALL_TIME
from pytest_ttnn_perf.workflow.observe import Observer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


class FunctionalObserver(Observer):
    """The fixture without the gate: every callable runs once, accuracy is enforced at once."""

    __slots__ = ()

    def attach(self, path: str | os.PathLike[str]) -> None:
        """Leave a capture alone: nothing is compared, and there may be none."""

    def measure(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run ``fn`` once, prepared and synchronised as it would be under the gate."""
        kwargs = {**kwargs, "warmup": 0, "iterations": 1}
        kwargs.pop("pipelined", None)
        name = kwargs.pop("name", WALL_TIME)
        self._series.pop(name, None)  # the same model may run as often as the test likes
        return super().measure(fn, *args, name=name, **kwargs)

    def _accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        __tracebackhide__ = True
        if at_least is not None and not value >= at_least:  # so that NaN is caught as well
            limit = f"at least {at_least:g}"
        elif at_most is not None and not value <= at_most:
            limit = f"at most {at_most:g}"
        elif not math.isfinite(value):
            limit = "a finite number"
        else:
            return
        message = f"{name} is {value:.6g}, expected {limit}" + (f": {note}" if note else "")
        raise AccuracyError(message)
