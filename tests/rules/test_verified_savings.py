"""Estimates of savings beside what was gained where somebody did as a rule says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.harness.corpus import corpus

#: Estimates that are not within a factor of two, and how far off they are: rule and weights.
OFF = {("TTP311", (5376, 21504)): 0.41}


@pytest.fixture(scope="module")
def savings() -> Any:
    """Return the script of the page as a module."""
    file = Path(__file__).parents[2] / "docs" / "savings.py"
    spec = importlib.util.spec_from_file_location("docs_savings", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_estimates_are_within_a_factor_of_two_or_known_to_be_off(savings: Any) -> None:
    folder = corpus("ops_perf/gemma_sliding_decode_final.csv").parent
    found = list(savings.verified(folder))
    assert len(found) == sum(len(pair.ops) for pair in savings.PAIRS)
    off = {(one.pair.code, one.before.weights): one for one in found if not one.is_good}
    assert off.keys() == OFF.keys()
    for key, one in off.items():
        assert one.estimated_ns / one.gained_ns == pytest.approx(OFF[key], abs=0.005)


def test_the_page_says_which_and_of_which_rules_nothing_is_known(savings: Any) -> None:
    text = savings.page(corpus("ops_perf/gemma_sliding_decode_final.csv").parent)
    assert "18 of 19 are within a factor of two. Not so: TTP311" in text
    assert "was fitted to the captures of this corpus" in text
    assert "[TTP202](TTP202.md)" in text.partition("No pair in the corpus")[2]


def test_estimates_of_parts_of_a_step_are_within_a_factor_of_two(savings: Any) -> None:
    folder = corpus("ops_perf/gemma_sliding_decode_final.csv").parent
    made = list(savings.changes_made(folder))
    assert len(made) == len(savings.CHANGES)
    assert [one.change for one in made if not one.is_good] == []
    assert "11 of 11 are within a factor of two." in savings.page(folder)
