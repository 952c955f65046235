"""Limits that let worse outputs pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.checklist.measurements import NO_PCC, pccs
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.settings import USUAL_PCC

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import Observation


@rule("TTP906", "pcc-limit-lowered", Severity.WARNING, Input.TEST)
def pcc_limit_lowered(
    observation: Observation,
    *,
    least: Limit = Limit(USUAL_PCC, "PCC", "bring-up guides of tt-metal"),
) -> Answer:
    """A test asks for less PCC than usual, and does not say why.

    ## What it finds
    PCC limits below 0.99. A reason that the test records waives the finding.

    ## Why it matters
    A lowered limit makes a test green and stays. Later readers cannot tell a model that does not
    get better from one that was broken once.

    ## What to do
    Fix the model, or record the reason in the marker: `waive={"TTP906": "bfloat4_b weights"}`.
    Where no test may ask for less than 0.99, set `limits = "strict"` in the configuration: 0.99
    then holds whatever a test asks for, and a test below it fails.

    ## When it is no problem
    With a reason: generated images and long decodes have their own measures.

    ## Where it looks
    The limit of every PCC that the test checks, from its calls of `check_pcc`, its marker or the
    setting `pcc`.
    """
    asked = {
        pcc.metric.name: least.value if pcc.limits.at_least is None else pcc.limits.at_least
        for pcc in pccs(observation)
    }
    if not asked:
        return Answer.not_measured(NO_PCC)
    lowered = sorted((bound, name) for name, bound in asked.items() if bound < least.value)
    return least.at_least(
        min(asked.values()),
        "; ".join(f"{name} needs {bound:g} only" for bound, name in lowered),
        (Evidence(name, bound, "PCC") for bound, name in lowered),
    )
