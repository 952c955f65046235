"""Every rule there is, in the order of their codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.rules.ttp203_layout_conversions import LayoutConversions

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.rule import Rule

RULES: Final[tuple[type[Rule], ...]] = (LayoutConversions,)
