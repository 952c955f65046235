"""``ttnn-perf baseline rename``: baselines follow their tests, with their op tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.harness.baselines import N150, T3K, ops, stored, times

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

OLD, NEW = "models/test_a.py::test_old", "models/test_a.py::test_new"
KEY = "wormhole_b0-n150-1x1"


def test_a_test_takes_its_numbers_along_on_every_key(desk: Desk) -> None:
    desk.store(OLD, stored(times(10.0, 10.1), table=ops("Matmul")))
    desk.store(OLD, stored(times(3.0)), T3K)
    desk.store(f"{OLD}er", stored(times(1.0)))
    ran = desk.run("rename", OLD, NEW)
    assert (ran.code, ran.errors) == (0, "")
    assert desk.sessions(NEW) == [10.0, 10.1]
    assert desk.find(NEW, T3K) is not None
    assert desk.find(OLD) is None
    assert desk.sessions(f"{OLD}er") == [1.0]
    tables = [name for name in desk.files() if name.endswith(".csv")]
    assert tables == [f"{KEY}/models/test_a.ops/test_new.csv"]
    baseline = desk.find(NEW)
    assert baseline is not None
    assert baseline.ops == "models/test_a.ops/test_new.csv"


@pytest.mark.parametrize(
    ("before", "after", "test", "expected"),
    [
        (OLD, NEW, f"{OLD}[8]", f"{NEW}[8]"),
        ("models/test_a.py", "models/test_b.py", OLD, "models/test_b.py::test_old"),
        ("models/test_a.py::", "cnn/test_a.py::", OLD, "cnn/test_a.py::test_old"),
        ("models/", "cnn/", OLD, "cnn/test_a.py::test_old"),
        ("t.py::TestX", "t.py::TestY", "t.py::TestX::test_a[1]", "t.py::TestY::test_a[1]"),
    ],
)
def test_what_can_be_renamed(desk: Desk, before: str, after: str, test: str, expected: str) -> None:
    desk.store(test, stored(times(10.0), table=ops("Matmul")))
    assert desk.run("rename", before, after).code == 0
    assert desk.sessions(expected) == [10.0]
    assert len(desk.files()) == 2  # one baseline file and one op table, nothing left behind


def test_a_name_that_is_taken_is_refused(desk: Desk) -> None:
    desk.store(OLD, stored(times(10.0)))
    desk.store(NEW, stored(times(20.0)))
    before = desk.files()
    ran = desk.run("rename", OLD, NEW)
    assert (ran.code, ran.text) == (2, "")
    assert f"{NEW} has a baseline of its own on {N150.key}, accepted 2026-11-15" in ran.errors
    assert desk.files() == before


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("models/test_a.py::test_odl", NEW, f"has no baseline in .*; near to it: {OLD}"),
        (OLD, "models/test_b.py", "is a test and models/test_b.py a file"),
        ("models/", "models/test_b.py", "is a folder and models/test_b.py a file"),
        (OLD, OLD, "expected two names that differ"),
    ],
)
def test_mistakes_are_named(desk: Desk, before: str, after: str, says: str) -> None:
    desk.store(OLD, stored(times(10.0)))
    ran = desk.run("rename", before, after)
    assert (ran.code, ran.text) == (2, "")
    assert re.search(says, ran.errors)
