"""Options and configuration file, as one record."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ttnn_perf.core.codec import LARGEST
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.finding import current_code
from pytest_ttnn_perf.core.observation import Requester
from pytest_ttnn_perf.core.options import OPTIONS, TURN_ON, attribute_of
from pytest_ttnn_perf.core.settings import (
    Settings,
    TestSettings,
    Update,
    load_settings,
    with_environment,
    with_options,
)
from pytest_ttnn_perf.core.text import did_you_mean, repr_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


_SETTINGS = pytest.StashKey[Settings]()


def settings_of(config: pytest.Config, *, root: Path | None = None) -> Settings:
    """Return the settings of this run; options win over the file.

    The file of pytest's own root folder, unless the first to ask names another ``root``.
    """
    if _SETTINGS not in config.stash:
        try:
            from_file, cwd = load_settings(root or config.rootpath), config.invocation_params.dir
            settings = with_environment(from_file, os.environ, cwd)
            settings = with_options(settings, _given(config), cwd)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        unexplained = not (settings.reason or "").strip()
        if settings.enabled and settings.update is Update.ALL and unexplained:
            message = '--ttnn-perf-update=all needs --ttnn-perf-reason "why the change is right"'
            raise pytest.UsageError(message)
        if config.known_args_namespace.ttnn_perf_reason is not None and settings.update is None:
            message = "--ttnn-perf-reason explains an update, and nothing is written without one: "
            raise pytest.UsageError(message + "add --ttnn-perf-update, or leave it out")
        config.stash[_SETTINGS] = settings
    return config.stash[_SETTINGS]


def _given(config: pytest.Config) -> dict[str, Any]:
    options = config.known_args_namespace
    values = {name: getattr(options, attribute_of(name)) for name, *_ in OPTIONS}
    # A flag that was not given is False; 0 and "" are values.
    given = {name: value for name, value in values.items() if not (value is None or value is False)}
    return {**given, "enabled": True} if any(values[name] for name in TURN_ON) else given


NAME: Final = "ttnn_perf"
_ASKED = pytest.StashKey[TestSettings]()


def is_marked(item: pytest.Item) -> bool:
    return _has_marker(item, (NAME,))


def _has_marker(item: pytest.Item, names: Sequence[str]) -> bool:
    return any(marker.name in names for marker in item.iter_markers())


def is_measured(item: pytest.Item, settings: Settings) -> bool:
    return (
        settings.all
        or NAME in getattr(item, "fixturenames", ())
        or _has_marker(item, (NAME, *settings.markers))
    )


def is_parametrised(item: pytest.Item) -> bool:
    """Return whether a test has parameters, and so maybe another identity."""
    return hasattr(item, "callspec")


def who_asked(item: pytest.Item, settings: Settings) -> Requester | None:
    if is_marked(item) or NAME in getattr(item, "fixturenames", ()):
        return Requester.TEST
    return Requester.PROJECT if _has_marker(item, settings.markers) else None


def test_settings(item: pytest.Item, settings: Settings) -> TestSettings:
    """Return the settings of a test's markers; nearer ones win by keyword."""
    if _ASKED not in item.stash:
        item.stash[_ASKED] = _read(item, settings)
    return item.stash[_ASKED]


def _read(item: pytest.Item, settings: Settings) -> TestSettings:
    asked: dict[str, Any] = {}
    # pytest lists a function's own marks before those that its parameters brought along.
    of_parameters = getattr(getattr(item, "callspec", None), "marks", ())
    for marker in sorted(item.iter_markers(NAME), key=lambda mark: mark not in of_parameters):
        if marker.args:
            message = f"{item.nodeid}: @pytest.mark.{NAME} takes keywords only, found {marker.args}"
            raise pytest.UsageError(message)
        asked = {**marker.kwargs, **asked}
    place = f"{item.nodeid}: @pytest.mark.{NAME}"
    unknown = sorted(set(asked) - set(_KEYWORDS))
    if unknown:
        message = f"{place} does not know {', '.join(unknown)}; it knows {', '.join(_KEYWORDS)}"
        raise pytest.UsageError(message + did_you_mean(unknown[0], _KEYWORDS))
    for name, value in asked.items():
        can_be_meant, expected = _KEYWORDS[name]
        if not can_be_meant(value):
            message = f"{place}: {name}: expected {expected}, found {repr_of(value)}"
            raise pytest.UsageError(message)
    for name in ("tolerance", "max_regression"):
        if name in asked and not isinstance(asked[name], dict):
            asked[name] = {"*": asked[name]}
    if "gate" in asked:
        names = asked["gate"]
        asked["gate"] = (names,) if isinstance(names, str) else tuple(sorted(names))
    if "waive" in asked:
        asked["waive"] = {
            current_code(str(code).upper()): why for code, why in asked["waive"].items()
        }
    if "sweep" in asked or "require" in asked:
        from pytest_ttnn_perf.plugin.sweeps import with_point

        asked = with_point(item, asked)
    defaults = {name: getattr(settings, name) for name in ("warmup", "iterations", "pcc")}
    return TestSettings(**{**defaults, **asked})


def _is_number(value: object, least: float = -LARGEST, most: float = LARGEST) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and least <= value <= most  # type: ignore[operator]


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and _is_number(value, least)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_limit(value: object) -> bool:
    limits = value.values() if isinstance(value, dict) else [value]
    return all(_is_number(limit, 0) for limit in limits)


def _is_goals(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(goal, str) or _is_number(goal) for goal in value.values()
    )


def _is_reasons(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_names(value: object) -> bool:
    return isinstance(value, (str, list, tuple, set, frozenset)) and all(map(_is_text, value))


_COUNT: Final = (partial(_is_count, least=1), "a whole number of at least 1")
_LIMIT: Final = (_is_limit, "a fraction of at least 0 (0.05 is 5 %), or one per metric")
_GOALS: Final = (_is_goals, 'a goal per metric, e.g. {"wall_time": "10 ms"}')
#: Whether a keyword's value can be meant, and what it should be.
_KEYWORDS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "warmup": (partial(_is_count, least=0), "a whole number of at least 0"),
    "iterations": _COUNT,
    "pcc": (partial(_is_number, least=-1, most=1), "a correlation from -1 to 1"),
    "batch": _COUNT,
    "tolerance": _LIMIT,
    "max_regression": _LIMIT,
    "target": _GOALS,
    "waive": (_is_reasons, 'a reason per rule, e.g. {"TTP203": "converted once"}'),
    "gate": (_is_names, 'names of metrics, e.g. {"op_count"}'),
    "region": (_is_text, 'the name of a region, e.g. "decode"'),
    "sweep": (bool, 'axes with their values, e.g. {"batch": [1, 2, 4]}'),
    "require": _GOALS,
}
