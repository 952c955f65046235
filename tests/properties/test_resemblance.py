"""Whether two tests are alike: a measure that is fair, and guesses that are never ambiguous."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Traits
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.gate.health import LIKELY, Face, pair_up
from tests.properties.records import OPS
from tests.properties.strategies import SOME, between

METRICS = st.sampled_from([Metric(name, "ms") for name in ("wall", "device", "first")])
VALUES = st.dictionaries(METRICS, between(-1e6, 1e6), min_size=1, max_size=3)
TRAITS = st.builds(Traits, VALUES, st.none() | OPS)
NAMED = st.dictionaries(st.sampled_from("abcdef"), TRAITS, max_size=4)


def resemblance(ours: Traits, theirs: Traits) -> float:
    return Face.of(ours).like(Face.of(theirs))


@SOME
@given(TRAITS, TRAITS)
def test_it_is_a_fraction_and_the_same_in_both_directions(one: Traits, other: Traits) -> None:
    assert 0 <= resemblance(one, other) <= 1
    assert resemblance(one, other) == resemblance(other, one)


@SOME
@given(TRAITS)
def test_a_test_resembles_itself_entirely(traits: Traits) -> None:
    assert resemblance(traits, traits) == 1


@SOME
@given(TRAITS)
def test_other_metrics_are_another_test(traits: Traits) -> None:
    other = {Metric(f"other {metric.name}", "ms"): v for metric, v in traits.values.items()}
    assert resemblance(traits, replace(traits, values=other)) == 0


@SOME
@given(TRAITS, between(1, 3), between(1, 3))
def test_the_further_the_numbers_the_less_alike(traits: Traits, a: float, b: float) -> None:
    def scaled(factor: float) -> Traits:
        return replace(traits, values={m: v * factor for m, v in traits.values.items()})

    near, far = sorted((a, b))
    assert resemblance(traits, scaled(near)) >= resemblance(traits, scaled(far)) - 1e-9


@SOME
@given(TRAITS, OPS)
def test_ops_never_make_tests_more_alike_than_their_numbers(traits: Traits, ops: object) -> None:
    other = Traits(traits.values, ops)  # type: ignore[arg-type]
    assert resemblance(traits, other) <= resemblance(replace(traits, ops=None), other)


def hints_of(*groups: dict[str, Traits]) -> dict[str, tuple[str]]:
    """Return hints that say nothing: each name is its own."""
    return {name: (name,) for group in groups for name in group}


@SOME
@given(NAMED, NAMED)
def test_pairs_are_likely_and_one_to_one(gone: dict[str, Traits], new: dict[str, Traits]) -> None:
    fresh = {f"new {name}": traits for name, traits in new.items()}
    pairs = pair_up(gone, fresh, hints=hints_of(gone, fresh))
    assert len(set(pairs.values())) == len(pairs)
    for old, name in pairs.items():
        assert resemblance(gone[old], fresh[name]) >= LIKELY
    backwards = pair_up(fresh, gone, hints=hints_of(gone, fresh))
    assert {old: name for name, old in backwards.items()} == pairs


@SOME
@given(TRAITS)
def test_one_candidate_is_found_and_two_that_are_the_same_are_not(traits: Traits) -> None:
    gone = {"old": traits}
    one, two = {"x": traits}, {"x": traits, "y": traits}
    assert pair_up(gone, one, hints=hints_of(gone, one)) == {"old": "x"}
    assert pair_up(gone, two, hints=hints_of(gone, two)) == {}
    assert pair_up({"old": traits, "older": traits}, one, hints={
        "old": ("a",), "older": ("b",), "x": ("c",),
    }) == {}  # fmt: skip


@SOME
@given(TRAITS)
def test_a_hint_decides_between_equals(traits: Traits) -> None:
    gone = {"a[1]": traits, "a[8]": traits}
    new = {"b[1]": traits, "b[8]": traits}
    hints = {name: (name, name.partition("[")[2]) for name in (*gone, *new)}
    assert pair_up(gone, new, hints=hints) == {"a[1]": "b[1]", "a[8]": "b[8]"}


def test_too_many_to_compare_are_no_guess() -> None:
    traits = Traits({Metric("wall", "ms"): 1.0})
    gone = {f"old {n}": traits for n in range(201)}
    new = {f"new {n}": traits for n in range(201)}
    assert pair_up(gone, new, hints=hints_of(gone, new)) == {}
