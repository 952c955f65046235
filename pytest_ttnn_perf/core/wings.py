"""The doors from the gate to its wings.

The gate's rooms (core, machine, gate, measure, report, plugin) never import a wing (analysis,
experiments, history, agents, cli). They call a function of one by the name of a door:

    artifact: Artifact = wings.call("read_attached", file, choice, began_s=0.0)

Which function is behind a door stands in one table, ``WINGS`` in ``plugin/activation.py``, as
"module:function". Table and wing are imported at the first call. Annotate the result: what comes
through a door is ``Any``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_table = ""


def register(table: str) -> None:
    """Use a table of doors, "module:name" of a mapping to "module:function"."""
    global _table  # noqa: PLW0603 (a process has one set of wings)
    _table = table


def call(door: str, *arguments: Any, **options: Any) -> Any:
    """Call the function behind a door."""
    return _load(_load(_table)[door])(*arguments, **options)


def is_loaded(door: str) -> bool:
    """Return whether the wing behind a door has been imported already."""
    return _load(_table)[door].partition(":")[0] in sys.modules


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
