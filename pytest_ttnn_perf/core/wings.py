"""Doors from the gate to its wings.

The gate's rooms (core, machine, gate, measure, report, plugin) never import a wing (analysis,
experiments, history, agents, cli). They read captures, ask for findings, changes by op and rounds,
and announce a run that has finished through a module named here:

    artifact = wings.captures.read_attached(file, choice, began_s=0.0)

``WINGS`` in ``plugin/activation.py`` has the module behind each door. It is imported when it is
first used, so a run that needs no wing loads none; a type checker sees it at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from pytest_ttnn_perf import history
    from pytest_ttnn_perf.analysis.checklist import runner as findings
    from pytest_ttnn_perf.analysis.readers import attach as captures
    from pytest_ttnn_perf.analysis.show import attribution as changes
    from pytest_ttnn_perf.experiments import ab as rounds
    from pytest_ttnn_perf.experiments import host

    __all__ = ["captures", "changes", "findings", "history", "host", "rounds"]

_table = ""


def register(table: str) -> None:
    """Use a table of doors, "module:name" of a mapping to modules."""
    global _table  # noqa: PLW0603 (a process has one set of wings)
    _table = table


def __getattr__(door: str) -> ModuleType:
    # The interpreter and pytest ask every module for names of their own.
    module, _, name = _table.partition(":")
    modules = getattr(import_module(module), name) if module else {}
    if door not in modules:
        raise AttributeError(door)
    return import_module(modules[door])
