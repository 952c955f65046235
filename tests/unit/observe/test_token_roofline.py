"""How near tokens come to the peaks of a board: reckoned by hand, or not told at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.observation import MetricObservation, Observation
from pytest_ttnn_perf.measure.recorder import SeriesTable
from pytest_ttnn_perf.measure.tokens import TokenLog, conditions_of, with_rooflines

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

N300 = Hardware("wormhole_b0", "n300", "1x2")
#: Two chips with 288 GB/s each read this in 10 ms.
WEIGHTS = 2 * 288e9 * 0.010
#: Two chips with 64 cores of 148/72 TFLOPS each do two operations with these in 25 ms, for 128
#: tokens of 4 users.
PARAMS = 2 * 64 * 148e12 / 72 * 0.025 / (2 * 128 * 4)


def observed(hardware: Hardware | None, **facts: Scalar) -> dict[str, MetricObservation]:
    """Return the metrics of tokens: the first after 100 ms, then one every 20 ms."""
    log, series = TokenLog(), SeriesTable()
    log.add(conditions_of("token_out", 4, 128), 100e6, [20e6] * 9, compiling=0)
    log.enter(series, ())
    metrics = {
        name: MetricObservation(own.metric, tuple(own.samples)) for name, own in series.items()
    }
    observation = Observation(
        "t",
        metrics,
        facts=facts,
        hardware=hardware,
        configuration={"grid": "8x8"},
    )
    return dict(with_rooflines(observation, log).metrics)


def test_both_phases_by_hand() -> None:
    found = observed(N300, weight_bytes=WEIGHTS, params=PARAMS, math_fidelity="HiFi2")
    assert found["token_out_decode_roofline"].samples == pytest.approx((50.0,))
    assert found["token_out_prefill_roofline"].samples == pytest.approx((25.0,))
    assert not found["token_out_decode_roofline"].gated


def test_nobody_asked() -> None:
    assert not [name for name in observed(N300) if name.endswith("_roofline")]


@pytest.mark.parametrize(
    ("hardware", "facts", "metric", "note"),
    [
        (None, {"weight_bytes": WEIGHTS}, "decode", "the peaks of this hardware are not known"),
        (
            Hardware("wormhole_b0", "n150", "1x1", simulated=True),
            {"weight_bytes": WEIGHTS},
            "decode",
            "the peaks of this hardware are not known",
        ),
        (N300, {"weight_bytes": "8 GB"}, "decode", "needs facts(weight_bytes=...)"),
        (N300, {"weight_bytes": 10 * WEIGHTS}, "decode", "500 % of the peak cannot be"),
        (N300, {"params": PARAMS}, "prefill", "needs facts(math_fidelity=...), one of LoFi"),
        (N300, {"params": PARAMS, "math_fidelity": "x"}, "prefill", "needs facts(math_fidelity"),
    ],
)
def test_what_cannot_be_told_is_not_invented(
    hardware: Hardware | None, facts: dict[str, Scalar], metric: str, note: str
) -> None:
    found = observed(hardware, **facts)[f"token_out_{metric}_roofline"]
    assert found.samples == ()
    assert note in str(found.note)
