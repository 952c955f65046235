"""Outputs that a helper let pass, and that it did not compare."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.finding import HelperPcc

_NONE: Final = Limit(0, "comparisons", "what leaves values out compares another output")


@rule("TTP908", "helper-pcc-differs", Severity.ERROR, Input.HELPERS)
def helper_pcc_differs(helper_pccs: tuple[HelperPcc, ...]) -> Answer:
    """A PCC helper lets an output pass that the values do not bear out.

    ## What it finds
    Comparisons that passed in a helper such as `comp_pcc` or `assert_with_pcc`, although the output
    holds NaN or infinity where the reference does not, neither side holds a finite value, both are
    empty, one element was stretched to many, or the values correlate less than the helper says.

    ## Why it matters
    These helpers replace NaN and infinity by zero, and compare the rest. A model that computes
    nothing but NaN in some places passes with a PCC of 0.999.

    ## What to do
    Find the first op that gives a value that is not finite, with comparison mode of TTNN; where the
    tensors are empty or of other shapes, compare the whole output.

    ## When it is no problem
    Values that are the same NaN or infinity on both sides, as masks are, and shapes that differ but
    hold the same elements are not found. An output with NaN by design is; compare it without.

    ## Where it looks
    The tensors that the test gave to the helper, if they are in host memory and have at most
    `observe_pcc_elements` elements.
    """
    evidence = [Evidence(f"{each.metric} ({each.helper}): {each.sentence}") for each in helper_pccs]
    told = "; ".join(map(_sentence, helper_pccs[:1]))
    more = f"; {len(helper_pccs) - 1} more" if len(helper_pccs) > 1 else ""
    return _NONE.at_most(len(helper_pccs), told + more, evidence)


def _sentence(pcc: HelperPcc) -> str:
    says = "passed" if pcc.told is None else f"{pcc.told:.6g}"
    ours = "does not exist" if isnan(pcc.ours) else f"is {pcc.ours:.6g}"
    return f"{pcc.metric}: {pcc.helper} says {says}, and the PCC {ours}: {pcc.sentence}"
