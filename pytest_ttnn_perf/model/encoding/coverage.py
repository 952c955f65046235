"""The tests that a run collected, as plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.coverage import Coverage

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.encoding.value import Value


def encode_coverage(coverage: Coverage) -> dict[str, object]:
    """Encode what was collected."""
    return {
        "places": list(coverage.places),
        "others": list(coverage.others),
        "unasked": list(coverage.unasked),
    }


def decode_coverage(value: Value) -> Coverage:
    """Decode it."""
    others, unasked = value.optional("others"), value.optional("unasked")
    return Coverage(
        places=tuple(item.string() for item in value.field("places").array()),
        others=tuple(item.string() for item in others.array()) if others else (),
        unasked=unasked.strings() if unasked else (),
    )
