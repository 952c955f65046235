"""The project's configuration: ``[tool.ttnn_perf]`` in pyproject.toml, or ttnn_perf.toml."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.config_names import OWN_FILE, SHARED_FILE, files_of, is_meant
from pytest_ttnn_perf._base.errors import DecodeError, InputError
from pytest_ttnn_perf.records.codec import Value
from pytest_ttnn_perf.records.finding import Severity
from pytest_ttnn_perf.records.settings import (
    Checklist,
    Isolate,
    Missing,
    PassChoice,
    PccLimits,
    ProfilerKind,
    RuleSettings,
    Settings,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def load_settings(root: Path) -> Settings:
    """Return the settings that the configuration of ``root`` gives; defaults for the rest.

    Raises:
        InputError: a file cannot be read, says something unknown, has a name that we do not read,
            or is one of two.
    """
    settings = Settings(baselines=root / "baselines", artifacts=root / ".ttnn_perf")
    tables = [(file, table) for file in files_of(root) if (table := _table(file)) is not None]
    if not tables:
        return settings
    if len(tables) > 1:
        problem = f"expected the settings in one file, found [tool.ttnn_perf] beside {OWN_FILE}"
        raise InputError(tables[1][0], f"{problem}: remove one of the two")
    file, table = tables[0]
    try:
        return _decoded(settings, Value(table), root=root)
    except DecodeError as error:
        raise InputError(file, _complaint(error, file.name)) from error


def find_root(start: Path) -> Path:
    """Return the nearest folder above ``start`` that configures us; ``start`` when none does."""
    for folder in (start, *start.parents):
        if files_of(folder):
            return folder
    return start


def _table(file: Path) -> Any:
    is_own = file.name != SHARED_FILE
    if is_own and file.name != OWN_FILE:
        raise InputError(file, f"expected the name {OWN_FILE}, found {file.name}")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause
    except ValueError as cause:
        raise InputError(file, f"not valid TOML: {cause}") from cause
    return document if is_own else _shared_table(file, document)


def _shared_table(file: Path, document: dict[str, Any]) -> Any:
    """Return our table; one that was meant to be ours and is not would be read by nobody."""
    for name, table in document.items():
        inside = table if name.lower() in {"tool", "tools"} and isinstance(table, dict) else {}
        found = [name] if is_meant(name) else [f"{name}.{key}" for key in inside if is_meant(key)]
        for path in found:
            if path != "tool.ttnn_perf":
                problem = f"expected the table [tool.ttnn_perf], found [{path}]"
                raise InputError(file, problem)
    tool = document.get("tool")
    return tool.get("ttnn_perf") if isinstance(tool, dict) else None


def _decoded(settings: Settings, table: Value, *, root: Path) -> Settings:
    for name, value in table.items():
        if name not in _READERS:
            known = ", ".join(sorted(_READERS))
            raise DecodeError(value.path, f"one of {known}", f"the unknown setting {name!r}")
        settings = replace(settings, **{name: _READERS[name](value, root)})
    return settings


def _complaint(error: DecodeError, file_name: str) -> str:
    """Say what is wrong with a setting in the words of TOML."""
    table = "" if file_name == OWN_FILE else "[tool.ttnn_perf] "
    place = ".".join(str(step) for step in error.path)
    found = error.found.replace("an object", "a table")
    expected = error.expected.replace("an object", "a table")
    return f"{table}{place + ': ' if place else ''}expected {expected}, found {found}"


def _path(value: Value, root: Path) -> Path:
    return root / Path(value.string()).expanduser()


def _flag(value: Value, _root: Path) -> bool:
    return value.boolean()


def _text(value: Value, _root: Path) -> str:
    return value.string()


def _pcc(value: Value, _root: Path) -> float:
    limit = value.number()
    if not -1 <= limit <= 1:
        raise value.refusal("a correlation from -1 to 1")
    return limit


def _codes(value: Value, _root: Path) -> tuple[str, ...]:
    return tuple(item.string().upper() for item in value.array())


def _waiver(value: Value) -> str:
    if not value.string().strip():
        raise value.refusal("the reason to do without the rule")
    return value.string()


def _rule(value: Value) -> RuleSettings:
    """Read what is said of one rule: its severity, why it is waived, and limits by their names."""
    severity, waive = value.optional("severity"), value.optional("waive")
    return RuleSettings(
        {name: item.number() for name, item in value.items() if name not in {"severity", "waive"}},
        severity.one_of(Severity) if severity else None,
        _waiver(waive) if waive else None,
    )


#: Every setting that a file may give, and how it is read.
_READERS: Final[dict[str, Callable[[Value, Path], Any]]] = {
    "enabled": _flag,
    "all": _flag,
    "baselines": _path,
    "artifacts": _path,
    "update": lambda value, _: value.one_of(Update),
    "reason": _text,
    "missing": lambda value, _: value.one_of(Missing),
    "required": _flag,
    "stale_days": lambda value, _: value.integer(),
    "isolate": lambda value, _: value.one_of(Isolate),
    "confirm": lambda value, _: value.integer(),
    "timeout": lambda value, _: value.integer(),
    "warmup": lambda value, _: value.integer(),
    "iterations": lambda value, _: value.integer(at_least=1),
    "pcc": _pcc,
    "limits": lambda value, _: value.one_of(PccLimits),
    "json": _path,
    "markdown": _path,
    "gitlab": _path,
    "annotations": _flag,
    "step_summary": _flag,
    "junit_properties": _flag,
    "label": _text,
    "replay": _path,
    "profiler": lambda value, _: value.one_of(ProfilerKind),
    "passes": lambda value, _: value.one_of(PassChoice),
    "reset": _text,
    "checklist": lambda value, _: value.one_of(Checklist),
    "select": _codes,
    "ignore": _codes,
    "rules": lambda value, _: {code: _rule(item) for code, item in value.items()},
    "lock_folder": _path,
    "lock_timeout": lambda value, _: value.integer(),
    "markers": lambda value, _: value.strings(),
    "gate_call_time": _flag,
    "gate_first_call_time": _flag,
    "gate_second_call_time": _flag,
}
