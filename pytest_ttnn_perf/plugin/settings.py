"""Options and configuration file, as one record."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.observation import Requester
from pytest_ttnn_perf.core.options import OPTIONS, TURN_ON, attribute_of
from pytest_ttnn_perf.core.settings import (
    Settings,
    TestSettings,
    Update,
    finite_number,
    load_settings,
    whole_number,
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
    unknown = sorted(set(asked) - set(_MARKER_READERS))
    if unknown:
        message = (
            f"{item.nodeid}: @pytest.mark.{NAME} does not know {', '.join(unknown)}; "
            f"it knows {', '.join(_MARKER_READERS)}"
        )
        message += did_you_mean(unknown[0], _MARKER_READERS) if len(unknown) == 1 else ""
        raise pytest.UsageError(message)
    try:
        read = {name: _MARKER_READERS[name](name, value) for name, value in asked.items()}
    except UsageError as error:
        message = f"{item.nodeid}: @pytest.mark.{NAME}: {error}"
        raise pytest.UsageError(message) from error
    if "sweep" in read or "require" in read:
        from pytest_ttnn_perf.plugin.sweeps import with_point

        read = with_point(item, read)
    defaults = {name: getattr(settings, name) for name in ("warmup", "iterations", "pcc")}
    return TestSettings(**{**defaults, **read})


def _refuse(name: str, expected: str, found: object) -> UsageError:
    return UsageError(f"{name}: expected {expected}, found {repr_of(found)}")


def _correlation(name: str, value: object) -> float:
    number = finite_number(name, value)
    if not -1 <= number <= 1:
        raise _refuse(name, "a correlation from -1 to 1", value)
    return number


def _fractions(name: str, value: object) -> Mapping[str, float]:
    limits: dict[str, Any] = value if isinstance(value, dict) else {"*": value}
    for metric, limit in limits.items():
        place = name if metric == "*" else f"{name} {metric}"
        if finite_number(place, limit) < 0:
            raise _refuse(place, "a fraction of at least 0 (0.05 is 5 %)", limit)
    return limits


def _goals(name: str, value: object) -> Mapping[str, str | float]:
    if not isinstance(value, dict):
        raise _refuse(name, 'a goal per metric, e.g. {"wall_time": "10 ms"}', value)
    for metric, goal in value.items():
        if not isinstance(goal, str):
            finite_number(f"{name} {metric}", goal)
    return value


def _axes(name: str, value: object) -> Mapping[str, Any]:
    from pytest_ttnn_perf.plugin.sweeps import axes_of

    return axes_of(name, value)


def _waivers(name: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(
        isinstance(reason, str) and reason.strip() for reason in value.values()
    ):
        raise _refuse(name, 'a reason per rule, e.g. {"TTP203": "converted once"}', value)
    return {str(code).upper(): reason for code, reason in value.items()}


def _metric_names(name: str, value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(
        isinstance(metric, str) and metric for metric in names
    ):
        raise _refuse(name, 'names of metrics, e.g. {"op_count"}', value)
    return tuple(sorted(names))


def _region(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _refuse(name, 'the name of a region, e.g. "decode"', value)
    return value


_MARKER_READERS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "warmup": partial(whole_number, least=0),
    "iterations": partial(whole_number, least=1),
    "pcc": _correlation,
    "batch": partial(whole_number, least=1),
    "tolerance": _fractions,
    "max_regression": _fractions,
    "target": _goals,
    "waive": _waivers,
    "gate": _metric_names,
    "region": _region,
    "sweep": _axes,
    "require": _goals,
}
