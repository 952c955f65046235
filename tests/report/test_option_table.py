"""The table of settings: what holds for all of them, in both files and on the command line."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.options import FILE_ONLY, OPTIONS, TURN_ON
from pytest_ttnn_perf.core.settings import _CHOICES, _READERS, Settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path


KINDS = [(name, kind) for name, kind, *_ in (*OPTIONS, *FILE_ONLY)]


def test_every_field_of_the_record_is_a_setting_and_the_other_way_round() -> None:
    assert sorted(name for name, _ in KINDS) == sorted(Settings.__struct_fields__)
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


def value_of(name: str, kind: str) -> str:
    """Return a value of a setting that is not its default, as TOML."""
    default = getattr(Settings(), name)
    if kind.startswith("choice"):
        return next(json.dumps(each.value) for each in _CHOICES[name] if each is not default)
    values = {
        "flag": json.dumps(not default), "path": '"a"', "text": '"a"', "number from 0": "7",
        "number from 1": "7", "codes": '["TTP7"]', "names": '["a"]', "correlation": "0.5",
        "rules": '{TTP203 = {waive = "a"}}', "parts of the key": '["board", "mesh", "host"]',
        "database": '"sqlite:///a.db"',
    }  # fmt: skip
    return values[kind]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_both_files_are_read_alike(tmp_path: Path, name: str, kind: str) -> None:
    line = f"{name} = {value_of(name, kind)}\n"
    defaults = load_settings(tmp_path)

    (tmp_path / "pyproject.toml").write_text(f"[tool.ttnn_perf]\n{line}")
    shared = load_settings(tmp_path)
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "ttnn_perf.toml").write_text(line)

    assert load_settings(tmp_path) == shared
    changed = {each for each in Settings.__struct_fields__
               if getattr(shared, each) != getattr(defaults, each)}  # fmt: skip
    assert changed == {name}


#: What no setting of a kind takes, with what the message says instead.
WRONG = {
    "flag": ("1", "true or false"),
    "path": ("3", "a string"),
    "text": ("true", "a string"),
    "number from 0": ("-1", "a whole number of at least 0"),
    "number from 1": ("0", "a whole number of at least 1"),
    "codes": ("1", "a list"),
    "names": ("1", "a list"),
    "correlation": ("2", "a correlation from -1 to 1"),
    "rules": ("1", "a table"),
    "parts of the key": ("1", "a list"),
    "database": ("1", "a string"),
}


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_other_values_are_refused_in_the_file(tmp_path: Path, name: str, kind: str) -> None:
    if kind.startswith("choice"):
        choices = ", ".join(repr(choice.value) for choice in _CHOICES[name])
        value, expected = "'other'", f"one of {choices}"
    else:
        value, expected = WRONG[kind]
    (tmp_path / "ttnn_perf.toml").write_text(f"{name} = {value}\n")

    with pytest.raises(InputError) as refused:
        load_settings(tmp_path)

    found = "True" if value == "true" else value
    assert str(refused.value).endswith(f": {name}: expected {expected}, found {found}")
