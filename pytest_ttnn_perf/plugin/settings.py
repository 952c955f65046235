"""Options and configuration file, as one record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.profile import PassChoice, ProfilerKind
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.model.settings import Isolate, Missing, Settings, Update
from pytest_ttnn_perf.plugin.options import TURN_ON
from pytest_ttnn_perf.workflow.config_file import load_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

_SETTINGS = pytest.StashKey[Settings]()


def settings_of(config: pytest.Config, *, root: Path | None = None) -> Settings:
    """Return the settings of this run; the command line wins over the file.

    The file of pytest's own root folder, unless the first to ask names another ``root``.
    """
    if _SETTINGS not in config.stash:
        try:
            from_file = load_settings(root or config.rootpath)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        settings = _overridden(from_file, config.known_args_namespace, config.invocation_params.dir)
        unexplained = not (settings.reason or "").strip()
        if settings.enabled and settings.update is Update.ALL and unexplained:
            message = '--ttnn-perf-update=all needs --ttnn-perf-reason "why the change is right"'
            raise pytest.UsageError(message)
        config.stash[_SETTINGS] = settings
    return config.stash[_SETTINGS]


def _overridden(settings: Settings, options: argparse.Namespace, here: Path) -> Settings:
    given = {
        name: _READERS.get(name, _as_is)(value, here)
        for name in _NAMES
        if (value := getattr(options, f"ttnn_perf_{name}")) is not None
    }
    settings = replace(settings, **given)
    asked = any(getattr(options, name) for name in TURN_ON)
    return replace(
        settings, enabled=asked or settings.enabled, all=options.ttnn_perf_all or settings.all
    )


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code.strip().upper() for code in text.split(",") if code.strip())


def _as_is(value: Any, _here: Path) -> Any:
    return value


def _path(value: str, here: Path) -> Path:
    """Read a path of the command line: relative to where the user stands, unlike the file's."""
    return here / Path(value).expanduser()


_NAMES: Final = (
    "baselines",
    "artifacts",
    "update",
    "reason",
    "missing",
    "isolate",
    "confirm",
    "timeout",
    "warmup",
    "iterations",
    "json",
    "markdown",
    "gitlab",
    "label",
    "replay",
    "profiler",
    "passes",
    "reset",
    "checklist",
    "select",
    "ignore",
)
_READERS: Final[Mapping[str, Callable[[Any, Path], Any]]] = {
    "baselines": _path,
    "artifacts": _path,
    "json": _path,
    "markdown": _path,
    "gitlab": _path,
    "replay": _path,
    "update": lambda value, _: Update(value),
    "missing": lambda value, _: Missing(value),
    "isolate": lambda value, _: Isolate(value),
    "profiler": lambda value, _: ProfilerKind(value),
    "passes": lambda value, _: PassChoice(value),
    "checklist": lambda value, _: Checklist(value),
    "select": lambda value, _: _codes(value),
    "ignore": lambda value, _: _codes(value),
}
