"""Which ops make up the change of a test's times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.attribution.grouping import attribute_groups
from pytest_ttnn_perf.report.attribution import attribution_sentence

if TYPE_CHECKING:
    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.op_groups import OpGroups


def change_by_op(before: OpGroups, after: OpGroups) -> str:
    """Say which ops make up the change between two tables."""
    attribution = attribute_groups(before, after)
    if attribution is None:
        return f"cannot be told: {before.kernel_time} then, {after.kernel_time} now"
    return attribution_sentence(attribution)


def judged_by_op(judged: JudgedTest, store: BaselineStore, hardware: Hardware) -> str | None:
    """Say which ops make up a change from a test's baseline; None where there is nothing to say.

    A table that cannot be read costs the explanation, not the verdict.
    """
    now = judged.observation.ops
    if now is None or not any(verdict.is_of_changed_time for verdict in judged.verdicts):
        return None
    try:
        then = store.ops_of(hardware, judged.observation.test)
    except InputError as error:
        return f"cannot be told: {error}"
    return None if then is None else change_by_op(then, now)
