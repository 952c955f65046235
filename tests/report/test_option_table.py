"""The table of settings: what holds for all of them, in both files and on the command line."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.options import OPTIONS, TURN_ON
from pytest_ttnn_perf.core.settings import (
    BrokerUse,
    Checklist,
    HelperAsserts,
    Isolate,
    Missing,
    PassChoice,
    PccLimits,
    ProfilerKind,
    Settings,
    TooNoisy,
    Update,
    load_settings,
)

if TYPE_CHECKING:
    from pathlib import Path


DEFAULTS = Settings()
#: Of each setting: a value that is not its default, one that it does not take, what is expected.
FILE = {
    **{
        name: (str(not default).lower(), "1", "true or false")
        for name in Settings.__struct_fields__
        if isinstance(default := getattr(DEFAULTS, name), bool)
    },
    **{
        name: (
            repr(next(each.value for each in kind if each is not getattr(DEFAULTS, name))),
            "'other'",
            f"one of {', '.join(repr(each.value) for each in kind)}",
        )
        for name, kind in {
            "update": Update, "missing": Missing, "too_noisy": TooNoisy,
            "isolate": Isolate, "limits": PccLimits,
            "profiler": ProfilerKind, "passes": PassChoice, "checklist": Checklist,
            "broker": BrokerUse, "helper_asserts": HelperAsserts,
        }.items()
    },
    **dict.fromkeys(
        ("baselines", "artifacts", "json", "markdown", "html", "gitlab", "benchmark_json",
         "replay", "lock_folder", "targets", "reason", "label", "reset", "build"),
        ("'a'", "3", "a string"),
    ),
    **dict.fromkeys(
        ("stale_days", "confirm", "timeout", "warmup", "lock_timeout", "observe_pcc_elements"),
        ("7", "-1", "a whole number of at least 0"),
    ),
    **dict.fromkeys(
        ("iterations", "preflight_timeout", "builds_gb"), ("7", "0", "a whole number of at least 1")
    ),
    **dict.fromkeys(
        ("select", "ignore", "markers", "identity_ignores", "gate_steps"), ("['A7']", "1", "a list")
    ),
    "pcc": ("0.5", "2", "a correlation from -1 to 1"),
    "rules": ("{TTP203 = {waive = 'a'}}", "1", "a table"),
    "key": ("['board', 'mesh', 'host']", "1", "a list"),
    "observe": ("'gate'", "1", "true, false or 'gate'"),
    "measurements": ("{'a*' = {unit = 'ms'}}", "1", "a table"),
    "history": ("'sqlite:///a.db'", "1", "a string"),
}  # fmt: skip


def test_every_field_of_the_record_is_tried_and_has_its_option() -> None:
    assert sorted(FILE) == sorted(Settings.__struct_fields__)
    assert {name for name, *_ in OPTIONS} <= set(FILE)
    assert set(TURN_ON) <= {name for name, *_ in OPTIONS}


@pytest.mark.parametrize(("name", "kind", "values", "description"), OPTIONS)
def test_help_names_choices_and_default_of_the_record(
    name: str, kind: str, values: object, description: str
) -> None:
    if kind.startswith("choice"):
        assert FILE[name][2] == f"one of {', '.join(map(repr, values))}"  # type: ignore[call-overload]
    named = re.search(r"\(default: ([^ ,)]+)", description)
    default = getattr(DEFAULTS, name)
    shown = default.value if isinstance(default, Enum) else default
    expected = f"{shown:g}" if isinstance(shown, float) else str(shown)
    assert named is None or named[1] == expected


@pytest.mark.parametrize("name", FILE)
def test_both_files_are_read_alike_and_refuse_other_values(tmp_path: Path, name: str) -> None:
    right, wrong, expected = FILE[name]
    defaults = load_settings(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.ttnn_perf]\n{name} = {right}\n")
    shared = load_settings(tmp_path)
    (tmp_path / "pyproject.toml").unlink()
    own = tmp_path / "ttnn_perf.toml"
    own.write_text(f"{name} = {right}\n")

    assert repr(load_settings(tmp_path)) == repr(shared)
    changed = {each for each in Settings.__struct_fields__
               if getattr(shared, each) != getattr(defaults, each)}  # fmt: skip
    assert changed == {name}

    own.write_text(f"{name} = {wrong}\n")
    with pytest.raises(InputError) as refused:
        load_settings(tmp_path)
    assert str(refused.value).endswith(f": {name}: expected {expected}, found {wrong}")
