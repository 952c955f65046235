"""In what two ops that stand for each other differ, as far as it may explain their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.attribution.config import settings_in
from pytest_ttnn_perf.attribution.words import shape_text
from pytest_ttnn_perf.model.attribution import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.attribution.catalogue import Variant
    from pytest_ttnn_perf.model.ops import Tensor


def causes_between(before: Variant, after: Variant) -> tuple[Cause, ...]:
    """Return the differences; what one side does not tell is no difference."""
    both = _both(before, after)
    return tuple(Cause(what, then, now) for what, then, now in both if then and now and now != then)


def _both(before: Variant, after: Variant) -> Iterator[tuple[str, str | None, str | None]]:
    """Yield what may differ: its name, and its value before and after."""
    yield "cores", str(before.cores or ""), str(after.cores or "")
    yield "fidelity", before.fidelity, after.fidelity
    if before.signature != after.signature:
        ours, theirs = before.signature, after.signature
        yield from _operands("in", ours.inputs, theirs.inputs)
        yield from _operands("out", ours.outputs, theirs.outputs)
    if before.attributes != after.attributes:
        now = dict(settings_in(after.attributes))
        for key, value in settings_in(before.attributes):
            yield key, value, now.get(key)


def _operands(
    side: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> Iterator[tuple[str, str, str]]:
    if len(before) != len(after):
        yield f"{side}puts", str(len(before)), str(len(after))
    for place, (then, now) in enumerate(zip(before, after, strict=False)):
        if then != now:
            name = f"{side}{place}"
            yield f"{name} dtype", then.dtype, now.dtype
            yield f"{name} memory", then.memory, now.memory
            yield f"{name} layout", then.layout, now.layout
            yield f"{name} shape", *_shapes(then, now)


def _shapes(before: Tensor, after: Tensor) -> tuple[str, str]:
    """Return logical shapes where both sides tell them; padding follows from the layout."""
    if before.logical is None or after.logical is None:
        return shape_text(before.padded), shape_text(after.padded)
    return shape_text(before.logical), shape_text(after.logical)
