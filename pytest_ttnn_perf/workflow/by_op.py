"""Which ops make up the change of a test's times."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.attribution.grouping import attribute_groups
from pytest_ttnn_perf.model.metric import KERNEL_TIME
from pytest_ttnn_perf.report.attribution import attribution_sentence

if TYPE_CHECKING:
    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest
    from pytest_ttnn_perf.model.op_groups import OpGroups
    from pytest_ttnn_perf.model.verdict import Verdict

#: How much of a stored time its digits leave open.
_ROUNDING: Final = 1e-6


def change_by_op(
    before: OpGroups, after: OpGroups, times_ns: tuple[float, float] | None = None
) -> str:
    """Say which ops make up the change between two tables, or of a time that they are of.

    The tables are of one session each, and ``times_ns`` may be of several: what these differ by
    besides is unexplained.
    """
    attribution = attribute_groups(before, after)
    if attribution is None:
        return f"cannot be told: {before.kernel_time} then, {after.kernel_time} now"
    then, now = times_ns or (attribution.before_ns, attribution.after_ns)
    if abs((now - then) - attribution.delta_ns) > _ROUNDING * then:
        explained = sum(part.delta_ns for part in attribution.parts)
        unexplained = (now - then) - explained
        attribution = replace(attribution, before_ns=then, after_ns=now, unexplained_ns=unexplained)
    return attribution_sentence(attribution)


def judged_by_op(judged: JudgedTest, store: BaselineStore, hardware: Hardware) -> str | None:
    """Say which ops make up a change from a test's baseline; None where there is nothing to say.

    A table that cannot be read costs the explanation, not the verdict.
    """
    now = judged.observation.ops
    if now is None or not any(verdict.is_of_changed_time for verdict in judged.verdicts):
        return None
    times_ns = next((_times_ns(v) for v in judged.verdicts if v.metric.name == KERNEL_TIME), None)
    if times_ns is None:
        return None  # the ops are of a time that was not compared
    try:
        then = store.ops_of(hardware, judged.observation.test)
    except InputError as error:
        return f"cannot be told: {error}"
    return None if then is None else change_by_op(then, now, times_ns)


def _times_ns(verdict: Verdict) -> tuple[float, float] | None:
    then, now = verdict.centre, verdict.observed
    return None if then is None or now is None else (then, now)
