"""The table of settings agrees with the record that the settings become."""

from __future__ import annotations

import re
from dataclasses import fields
from enum import Enum

import pytest

from pytest_ttnn_perf._base.configuration import FILE_ONLY, OPTIONS, TURN_ON
from pytest_ttnn_perf.records.settings import Settings
from pytest_ttnn_perf.run.settings import _CHOICES, _READERS

KINDS = [(name, kind) for name, kind, *_ in (*OPTIONS, *FILE_ONLY)]


def test_every_field_of_the_record_is_a_setting_and_the_other_way_round() -> None:
    assert sorted(name for name, _ in KINDS) == sorted(field.name for field in fields(Settings))
    assert {kind for _, kind in KINDS} == set(_READERS)
    assert {name for name, kind in KINDS if kind.startswith("choice")} == set(_CHOICES)
    assert set(TURN_ON) <= {name for name, *_ in OPTIONS}


@pytest.mark.parametrize("name", [name for name, _, values, _ in OPTIONS if type(values) is tuple])
def test_choices_are_those_of_the_record(name: str) -> None:
    choices = next(values for each, _, values, _ in OPTIONS if each == name)
    assert choices == tuple(choice.value for choice in _CHOICES[name])


@pytest.mark.parametrize(
    ("name", "description"), [(row[0], row[3]) for row in OPTIONS if "(default: " in row[3]]
)
def test_help_names_the_default_of_the_record(name: str, description: str) -> None:
    named = re.search(r"\(default: ([^ ,)]+)", description)
    default = getattr(Settings(), name)
    shown = default.value if isinstance(default, Enum) else default
    assert named is not None
    assert named[1] == (f"{shown:g}" if isinstance(shown, float) else str(shown))
