"""Laws of what findings would save together."""

from __future__ import annotations

from math import inf, isclose, nan
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.savings import Claim, rank_savings
from tests.properties.strategies import MANY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

_ROWS = st.integers(0, 6)
_TIMES = st.dictionaries(_ROWS, st.floats(0, 1e9))
_CLAIMED = st.floats(-1e3, 1e10) | st.sampled_from([nan, inf, -inf])
_CLAIMS = st.dictionaries(
    st.sampled_from(["TTP203", "TTP302", "TTP305", "TTP401", "ABC101"]),
    st.builds(Claim, st.dictionaries(_ROWS, _CLAIMED), st.floats(0, 1e9)),
)


@MANY
@given(_CLAIMS, _TIMES)
def test_together_they_save_no_more_than_there_is(
    claims: Mapping[str, Claim], times: Mapping[int, float]
) -> None:
    ranked = rank_savings(claims, times)
    waiting = max((claim.waiting_ns for claim in claims.values()), default=0.0)
    whole = sum(times.values()) + waiting
    assert sum(saving.adds_ns for saving in ranked.values()) <= whole * (1 + 1e-9)
    assert all(saving.saving_ns <= whole * (1 + 1e-9) for saving in ranked.values())


@MANY
@given(_CLAIMS, _TIMES)
def test_each_adds_at_most_what_it_would_save_alone_and_the_first_all_of_it(
    claims: Mapping[str, Claim], times: Mapping[int, float]
) -> None:
    savings = list(rank_savings(claims, times).values())
    assert all(0 <= saving.adds_ns <= saving.saving_ns for saving in savings)
    assert savings == sorted(savings, key=lambda saving: -saving.saving_ns)
    assert all(
        isclose(first.adds_ns, first.saving_ns, rel_tol=1e-9, abs_tol=1e-6) for first in savings[:1]
    )


@MANY
@given(_CLAIMS, _TIMES, st.randoms())
def test_the_order_in_which_they_are_found_does_not_matter(
    claims: Mapping[str, Claim], times: Mapping[int, float], random: Random
) -> None:
    shuffled = list(claims.items())
    random.shuffle(shuffled)
    assert list(rank_savings(dict(shuffled), times).items()) == list(
        rank_savings(claims, times).items()
    )


@MANY
@given(_CLAIMS, _TIMES)
def test_ops_that_nobody_else_claims_are_saved_in_full(
    claims: Mapping[str, Claim], times: Mapping[int, float]
) -> None:
    alone = {
        name: Claim({at + 100 * number: ns for at, ns in claim.ops_ns.items()})
        for number, (name, claim) in enumerate(claims.items())
    }
    apart = {at + 100 * number: ns for number in range(len(claims)) for at, ns in times.items()}
    for saving in rank_savings(alone, apart).values():
        assert isclose(saving.adds_ns, saving.saving_ns, rel_tol=1e-9, abs_tol=1e-6)
