"""A conversion to bfloat8_b that starts from float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import Answer, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.hardware import Scalar

#: Compile options of tt-xla that convert to bfloat8_b, and what they are set to for it.
_CONVERSIONS: Final = {
    "enable_bfp8_conversion": "true",
    "experimental_enable_weight_bfp8_conversion": "true",
    "experimental_weight_dtype": "bfp_bf8",
}
#: Facts that tell the format of a model.
_FORMATS: Final = ("data_format", "dtype", "torch_dtype")


@rule("TTP105", "bfp8-without-bfloat16-cast", Severity.WARNING, Input.DEVICE)
def bfp8_without_bfloat16_cast(facts: Mapping[str, Scalar]) -> Answer:
    """tt-xla converts to bfloat8_b, and the model is not bfloat16.

    ## What it finds
    A test that compiles with a conversion to bfloat8_b, and whose model is in another format than
    bfloat16.

    ## Why it matters
    The conversion starts from bfloat16, and inputs and outputs stay in the model's own format. A
    float32 model keeps float32 tensors and casts around the converted ops.

    ## What to do
    Cast the model and its inputs first: `model.to(dtype=torch.bfloat16)`.

    ## When it is no problem
    When PCC needs float32 in the ops that are not converted.

    ## Where it looks
    Of tt-xla's compile options, which are observed or stated in `ttnn_perf.facts`:
    `enable_bfp8_conversion` or `experimental_enable_weight_bfp8_conversion` as true, or
    `experimental_weight_dtype` as "bfp_bf8". The model's format is observed of a torch module that
    `measure` calls; of anything else the test states it as `data_format`, `dtype` or `torch_dtype`.
    """
    options = [name for name, on in _CONVERSIONS.items() if _text(facts.get(name)) == on]
    if not options:
        return Answer.not_applicable(
            "tt-xla converts nothing to bfloat8_b: neither observed nor stated"
        )
    formats = [_text(facts[name]) for name in _FORMATS if facts.get(name) is not None]
    if not formats:
        return Answer.not_measured(
            "the model's format is not known: state it with facts(data_format=…)"
        )
    if "bfloat16" in formats:
        return Answer.clean()
    return Answer.found(
        f"{options[0]} is on, and the model is {formats[0]}, not bfloat16",
        evidence=(Evidence(f"{name}={facts[name]}") for name in options),
    )


def _text(fact: Scalar) -> str:
    """Return a fact as tt-xla writes it: dtypes without their module, booleans in lower case."""
    return str(fact).rpartition(".")[2].lower()
