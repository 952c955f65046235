"""The t quantile against published values and against the density it is a quantile of."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.gate.ratios import t_quantile

PROBABILITIES = (0.90, 0.95, 0.975, 0.99, 0.995, 0.999)
#: Upper critical values as every table prints them (NIST/SEMATECH handbook 1.3.6.7.2 gives three
#: of these digits); six digits from scipy 1.17 and, to 40 digits, from mpmath 1.4.
PUBLISHED = {
    1: (3.077684, 6.313752, 12.706205, 31.820516, 63.656741, 318.308839),
    2: (1.885618, 2.919986, 4.302653, 6.964557, 9.924843, 22.327125),
    3: (1.637744, 2.353363, 3.182446, 4.540703, 5.840909, 10.214532),
    4: (1.533206, 2.131847, 2.776445, 3.746947, 4.604095, 7.173182),
    5: (1.475884, 2.015048, 2.570582, 3.364930, 4.032143, 5.893430),
    10: (1.372184, 1.812461, 2.228139, 2.763769, 3.169273, 4.143700),
    22: (1.321237, 1.717144, 2.073873, 2.508325, 2.818756, 3.504992),
    30: (1.310415, 1.697261, 2.042272, 2.457262, 2.749996, 3.385185),
    60: (1.295821, 1.670649, 2.000298, 2.390119, 2.660283, 3.231709),
    120: (1.288646, 1.657651, 1.979930, 2.357825, 2.617421, 3.159539),
}


@pytest.mark.parametrize("degrees", PUBLISHED)
def test_the_quantile_is_the_published_one(degrees: int) -> None:
    found = [t_quantile(probability, degrees) for probability in PROBABILITIES]
    assert found == pytest.approx(PUBLISHED[degrees], rel=0, abs=1e-6)


@pytest.mark.parametrize(("probability", "degrees"), [(0.5, 3), (1.0, 3), (0.95, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match=f"no quantile for probability {probability}"):
        t_quantile(probability, degrees)
