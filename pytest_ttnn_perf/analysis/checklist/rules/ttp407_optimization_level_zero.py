"""Models that tt-xla compiles without optimizing them."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.measurements import is_on, number, settings_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP407", "optimization-level-zero", Severity.INFO, Input.DEVICE)
def optimization_level_zero(
    subject: Subject, *, level: Limit = Limit(1, "level", "tt-xla's guide recommends level 1")
) -> Answer:
    """A model is compiled by tt-xla without optimization.

    ## What it finds
    A model that is compiled with `optimization_level` 0.

    ## Why it matters
    Level 0 turns all passes of the optimizer off and keeps every tensor in DRAM. It compiles
    fastest and runs slowest.

    ## What to do
    Set the compile option `optimization_level` to 1, which is recommended, or to 2, which also
    keeps as many tensors as it can in L1.

    ## When it is no problem
    While a model is brought up, when compile time matters more.

    ## Where it looks
    `optimization_level`, which is 0 unless it is set. It is observed of tests that use torch_xla
    with `PJRT_DEVICE` TT, or that give `compiler_options` to `jax.jit`; others state it:
    `ttnn_perf.facts(tt_xla=True, optimization_level=1)`.
    """
    settings = settings_of(subject)
    if "optimization_level" not in settings:
        if is_on(settings.get("tt_xla")):
            return Answer.not_measured("the level is not known: state the fact optimization_level")
        return Answer.not_applicable("no model of tt-xla: neither observed nor stated")
    stated = settings["optimization_level"]
    chosen = number(stated)
    if chosen is None:
        return Answer.not_measured(f"optimization_level: expected a number, found {stated!r}")
    return level.at_least(chosen, f"the model is compiled with optimization_level {chosen:g}")
