from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.rules.answers import Ask, Evidence, clean, found, not_applicable, not_measured

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

ask = Ask("TTP105")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enable_bfp8_conversion", "true"),
        ("enable_bfp8_conversion", True),
        ("experimental_enable_weight_bfp8_conversion", True),
        ("experimental_weight_dtype", "bfp_bf8"),
    ],
)
def test_a_float32_model_that_is_converted(option: str, value: Scalar) -> None:
    assert ask(facts={option: value, "data_format": "torch.float32"}) == found(
        f"{option} is on, and the model is float32, not bfloat16",
        evidence=[Evidence(f"{option}={value}")],
    )


@pytest.mark.parametrize("fact", ["data_format", "dtype", "torch_dtype"])
def test_a_bfloat16_model_is_clean(fact: str) -> None:
    facts: dict[str, Scalar] = {"enable_bfp8_conversion": True, fact: "torch.bfloat16"}
    assert ask(facts=facts) == clean()


@pytest.mark.parametrize("value", [False, "false", None])
def test_without_a_conversion(value: Scalar) -> None:
    answer = ask(facts={"enable_bfp8_conversion": value, "dtype": "float32"})
    assert answer == not_applicable(
        "tt-xla converts nothing to bfloat8_b: neither observed nor stated"
    )


def test_without_input() -> None:
    why = "the model's format is not known: state it with facts(data_format=…)"
    assert ask(facts={"enable_bfp8_conversion": True}) == not_measured(why)
    why = "tt-xla converts nothing to bfloat8_b: neither observed nor stated"
    assert ask(facts={"use_trace": True}) == not_applicable(why)
    why = "needs a device, or facts that are stated about one"
    assert ask() == not_measured(why)
