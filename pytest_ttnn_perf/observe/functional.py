"""The fixture without ``--ttnn-perf``: a functional test stays a functional test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._base.errors import AccuracyError
from pytest_ttnn_perf.observe.observer import Observer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


class FunctionalObserver(Observer):
    """The fixture without the gate: every callable runs once, accuracy is enforced at once."""

    __slots__ = ()

    def attach(self, path: str | os.PathLike[str], **choice: str | None) -> None:
        """Leave a capture alone: nothing is compared, and there may be none."""

    def measure(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run ``fn`` once, prepared and synchronised as it would be under the gate."""
        kwargs = {**kwargs, "warmup": 0, "iterations": 1}
        kwargs.pop("pipelined", None)
        self._series.clear()  # the same model may run as often as the test likes
        return super().measure(fn, *args, **kwargs)

    def measure_pipeline(self, pipeline: Any, inputs: list[Any], /, **options: Any) -> list[Any]:
        """Compile a pipeline unless that is done, and run it once over all inputs."""
        self._series.clear()
        return super().measure_pipeline(
            pipeline, inputs, **{**options, "warmup": 0, "iterations": 1}
        )

    async def measure_async(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Await ``fn`` once."""
        self._series.clear()
        return await super().measure_async(fn, *args, **{**kwargs, "warmup": 0, "iterations": 1})

    def accuracy(
        self,
        name: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        note: str | None = None,
    ) -> None:
        """Raise where a value is not within its limits."""
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
