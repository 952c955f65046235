"""Laws of what findings would save together."""

from __future__ import annotations

from math import inf, isclose, isfinite, nan
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.savings import Claim, rank_savings
from tests.properties.strategies import MANY

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = st.integers(0, 6)
_TIMES = st.dictionaries(_ROWS, st.floats(0, 1e9))
_CLAIMED = st.floats(-1e3, 1e10) | st.sampled_from([nan, inf, -inf])
_CLAIMS = st.dictionaries(
    st.sampled_from(["TTP203", "TTP302", "TTP305", "TTP401", "ABC101"]),
    st.builds(Claim, st.dictionaries(_ROWS, _CLAIMED), st.floats(0, 1e9), st.booleans()),
)
_GAPS = st.floats(0, 1e9)


@MANY
@example({"TTP203": Claim({0: 1.0}), "TTP302": Claim({0: 1.0}, 1.0, last=True)}, {0: 1.0}, 1.0)
@given(_CLAIMS, _TIMES, _GAPS)
def test_savings_add_up_in_whatever_order_they_are_found(
    claims: Mapping[str, Claim], times: Mapping[int, float], gaps_ns: float
) -> None:
    ranked = rank_savings(claims, times, gaps_ns)
    turned = rank_savings(dict(reversed(list(claims.items()))), times, gaps_ns)
    assert list(turned.items()) == list(ranked.items())
    alone = [claim.waiting_ns for claim in claims.values() if not claim.ops_ns]
    whole = sum(times.values()) + max([gaps_ns, *alone])
    # Together they save no more than there is, and none does by itself.
    assert sum(saving.adds_ns for saving in ranked.values()) <= whole * (1 + 1e-9)
    assert all(saving.saving_ns <= whole * (1 + 1e-9) for saving in ranked.values())
    # What saves most comes first, and adds all of it.
    order = [(claims[name].last, -saving.saving_ns) for name, saving in ranked.items()]
    assert order == sorted(order)
    for first in list(ranked.values())[:1]:
        assert isclose(first.adds_ns, first.saving_ns, rel_tol=1e-9, abs_tol=1e-6)
    # What another does not add is saved by those before it.
    before: set[str] = set()
    for name, saving in ranked.items():
        assert 0 <= saving.adds_ns <= saving.saving_ns
        assert saving.taken_ns.keys() <= before
        left = saving.saving_ns - saving.adds_ns
        assert sum(saving.taken_ns.values()) >= left * (1 - 1e-9) - 1e-3
        before.add(name)


@MANY
@given(_CLAIMS, _TIMES)
def test_several_ways_to_shorten_an_op_save_as_much_as_the_best_of_them(
    claims: Mapping[str, Claim], times: Mapping[int, float]
) -> None:
    of_ops = {name: claim._replace(waiting_ns=0.0) for name, claim in claims.items()}
    best = {
        row: max(
            (min(ns, took) for one in of_ops.values() if isfinite(ns := one.ops_ns.get(row, 0.0))),
            default=0.0,
        )
        for row, took in times.items()
    }
    adds = sum(saving.adds_ns for saving in rank_savings(of_ops, times).values())
    assert isclose(adds, sum(max(0.0, ns) for ns in best.values()), rel_tol=1e-9, abs_tol=1e-3)
