"""Judges how much of some operands is float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.wording import percent
from pytest_ttnn_perf.checklist.operands import NO_OPERANDS, by_weight, shape_text
from pytest_ttnn_perf.checklist.rule import clean, found, not_measured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.checklist.operands import Operand
    from pytest_ttnn_perf.checklist.rule import Answer


def judged_float32(operands: Sequence[Operand], *, at_most: float, unit: str, what: str) -> Answer:
    """Compare the share of float32 with a limit; ``what`` ops do with them: "take and give"."""
    total = sum(operand.size for operand in operands)
    if not total:
        return not_measured(NO_OPERANDS)
    wide = [operand for operand in operands if operand.tensor.dtype == "FLOAT32"]
    share = sum(operand.size for operand in wide) / total
    if share <= at_most:
        return clean(share, limit=at_most, unit=unit)
    return found(
        f"{percent(share)} of the bytes that ops {what} are float32",
        value=share,
        limit=at_most,
        unit=unit,
        evidence=by_weight(
            ((f"{each.op} {shape_text(each.tensor.padded)}", each.size) for each in wide),
            unit="B",
        ),
    )
