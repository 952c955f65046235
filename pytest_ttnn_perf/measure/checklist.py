"""The checklist in the process of a test: rules on captures."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import IO_COMPUTE_TIME, KERNEL_TIME
from pytest_ttnn_perf.core.settings import Checklist
from pytest_ttnn_perf.machine.environment import conflicts

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.finding import HelperPcc
    from pytest_ttnn_perf.core.observation import Artifact, Observation
    from pytest_ttnn_perf.core.settings import Settings


def check_test(
    observation: Observation,
    artifact: Artifact,
    settings: Settings,
    *,
    by_the_clock: bool,
    helper_pccs: tuple[HelperPcc, ...] | None = None,
) -> Observation:
    """Add the findings on a test that has ended, and its bottleneck.

    ``by_the_clock``: it was measured in a pass that takes wall times. ``helper_pccs`` are the wrong
    results of helpers; None where it called none.

    Raises:
        UsageError: the settings name a rule or limit that does not exist.
    """
    if settings.checklist is Checklist.OFF or observation.raised is not None:
        return observation
    variables = None
    if by_the_clock:  # they are variables of ttnn's own
        variables = conflicts(os.environ) if "ttnn" in sys.modules else ()
    subject = Subject(
        ops=artifact.table,
        report=artifact.report,
        kernels=artifact.kernels,
        observation=observation,
        facts=observation.device_facts,
        conflicts=variables,
        helper_pccs=helper_pccs,
    )
    findings, unanswered = wings.call("find", subject, settings)
    checked = replace(observation, findings=findings, unanswered=unanswered)
    timed = not observation.metrics.keys().isdisjoint({KERNEL_TIME, IO_COMPUTE_TIME})
    if subject.ops is None and subject.kernels is None and not timed:
        return checked  # a time alone does not tell what it is made of
    bottleneck, kind = wings.call("bottleneck", subject, settings.rules)
    return replace(checked, bottleneck=bottleneck, model_kind=kind.value if kind else None)
