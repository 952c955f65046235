"""Calls of the hooks that other plugins implement.

Each implementation is called by itself: one that fails is named, and the others still count.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pytest

from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.text import repr_of, text_of
from pytest_ttnn_perf.records.hardware import UNKNOWN, Hardware

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pluggy import HookImpl

    from pytest_ttnn_perf.analysis.checklist.runner import CustomRule
    from pytest_ttnn_perf.observe.custom_formats import CaptureFormat
    from pytest_ttnn_perf.records.observation import Observation, Run
    from pytest_ttnn_perf.records.settings import Settings

    Extension = TypeVar("Extension", CustomRule, CaptureFormat)


_CUSTOM_RULES: Final = "pytest_ttnn_perf.analysis.checklist.runner"
_CUSTOM_FORMATS: Final = "pytest_ttnn_perf.observe.custom_formats"
#: What an implementation may end with; pytest's outcomes are no Exceptions.
_RAISED: Final = (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception)


class HookError(TtnnPerfError):
    """An implementation of one of our hooks that raised, or returned what cannot be meant."""

    def __init__(self, owner: str, hook: str, problem: str) -> None:
        super().__init__(f"{owner}: {hook} {problem}")


@dataclass(eq=False)
class Extensions:
    """Takes up rules and formats of others, once conftest files are loaded."""

    settings: Settings

    def __post_init__(self) -> None:
        # An earlier run of this process may have had some of others.
        if _CUSTOM_RULES in sys.modules:
            from pytest_ttnn_perf.analysis.checklist.runner import use_custom_rules

            use_custom_rules(None)
        if _CUSTOM_FORMATS in sys.modules:
            from pytest_ttnn_perf.observe.custom_formats import use_capture_formats

            use_capture_formats(())

    def pytest_configure(self, config: pytest.Config) -> None:
        """Ask for them; a mistake stops the run before anything is measured."""
        try:
            self._take_rules(config)
            self._take_formats(config)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error

    def _take_rules(self, config: pytest.Config) -> None:
        settings = self.settings
        named = settings.select or settings.ignore or settings.rules
        # Most runs have none, and pay for none.
        if not named and not _implementations(config, "pytest_ttnn_perf_rules"):
            return
        from pytest_ttnn_perf.analysis.checklist.runner import (
            CustomRule,
            select_rules,
            use_custom_rules,
        )

        rules = _all_of(config, "pytest_ttnn_perf_rules", CustomRule)
        _refuse_double_codes(rules)
        use_custom_rules(rules)
        select_rules(settings.select, settings.ignore, settings.rules)

    def _take_formats(self, config: pytest.Config) -> None:
        if not _implementations(config, "pytest_ttnn_perf_capture_formats"):
            return
        from pytest_ttnn_perf.observe.custom_formats import CaptureFormat, use_capture_formats

        use_capture_formats(_all_of(config, "pytest_ttnn_perf_capture_formats", CaptureFormat))


def with_hardware(item: pytest.Item, observation: Observation) -> Observation:
    """Return an observation with what a hook tells of the hardware, where it is not known."""
    known = observation.hardware
    if known is not None and UNKNOWN not in {known.arch, known.board}:
        return observation
    name = "pytest_ttnn_perf_hardware"
    try:
        results = _results(item.config, name, {"item": item, "hardware": known})
        owner, result = next(((o, r) for o, r in results if r is not None), ("", None))
    except HookError as error:
        return replace(observation, problems=(*observation.problems, str(error)))
    if result is None:
        return observation
    if isinstance(result, Hardware) and _is_named(result):
        return replace(observation, hardware=result)
    problem = (
        f"returned {repr_of(result)}: expected Hardware(arch, board, mesh) of non-empty strings"
    )
    refused = str(HookError(owner, name, problem))
    return replace(observation, problems=(*observation.problems, refused))


def _is_named(hardware: Hardware) -> bool:
    parts = (hardware.arch, hardware.board, hardware.mesh)
    return all(isinstance(part, str) and part.strip() for part in parts[: 2 + bool(hardware.mesh)])


def report_run(config: pytest.Config, run: Run) -> list[str]:
    """Let others report a run; return what went wrong, a sentence each."""
    name = "pytest_ttnn_perf_report"
    implementations = _implementations(config, name)
    if not implementations:
        return []
    from pytest_ttnn_perf.run.record import run_text

    text = run_text(run)
    errors = []
    for implementation in implementations:
        # A document for each: what one changes in it is not what the next one reports.
        arguments = {"config": config, "run": run, "document": json.loads(text)}
        try:
            _call(config, name, implementation, arguments)
        except HookError as error:
            errors.append(str(error))
    return errors


def _all_of(config: pytest.Config, name: str, kind: type[Extension]) -> list[tuple[Extension, str]]:
    """Return the rules or formats of all plugins, each with the plugin that it is of."""
    found: list[tuple[Extension, str]] = []
    for owner, result in _results(config, name, {"config": config}):
        if result is None:
            continue
        if not isinstance(result, (list, tuple)):
            problem = f"returned {type(result).__name__}: expected a list of {kind.__name__}"
            raise HookError(owner, name, problem)
        for extension in result:
            if not isinstance(extension, kind):
                problem = (
                    f"returned a list with {repr_of(extension)} in it: expected {kind.__name__}"
                )
                raise HookError(owner, name, problem)
            mistake = extension.problem()
            if mistake is not None:
                raise HookError(owner, name, f"returned something that cannot be used: {mistake}")
            found.append((extension, owner))
    return found


def _refuse_double_codes(rules: list[tuple[CustomRule, str]]) -> None:
    owners: dict[str, str] = {}
    for rule, owner in rules:
        if rule.code in owners:
            problem = f"returned {rule.code}, which is a rule of {owners[rule.code]} already"
            raise HookError(owner, "pytest_ttnn_perf_rules", problem)
        owners[rule.code] = owner


def _results(
    config: pytest.Config, name: str, arguments: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    """Yield what each implementation returns, with the plugin that it is of.

    Raises:
        HookError: one raised.
    """
    for implementation in _implementations(config, name):
        yield _owner(config, implementation), _call(config, name, implementation, arguments)


def _implementations(config: pytest.Config, name: str) -> list[HookImpl]:
    """Return the implementations of a hook in the order in which pytest would call them."""
    found: list[HookImpl] = getattr(config.hook, name).get_hookimpls()
    return found[::-1]


def _call(
    config: pytest.Config, name: str, implementation: HookImpl, arguments: Mapping[str, object]
) -> object:
    if implementation.hookwrapper or implementation.wrapper:
        raise HookError(
            _owner(config, implementation), name, "is a wrapper, which this hook does not support"
        )
    try:
        return implementation.function(
            *(arguments[argument] for argument in implementation.argnames)
        )
    except _RAISED as error:
        text = f"raised {type(error).__name__}: {text_of(error)}".rstrip(": ")
        raise HookError(_owner(config, implementation), name, text) from error


def _owner(config: pytest.Config, implementation: HookImpl) -> str:
    """Name a plugin as its author knows it: a conftest file by its path from the root."""
    name = str(implementation.plugin_name)
    path = Path(name)
    return str(path.relative_to(config.rootpath)) if path.is_relative_to(config.rootpath) else name
