"""The parts of ``gate_quality.py``: noise, rules, trials, the ratchet, machines, the report."""

from typing import Any, TypeAlias

#: numpy's stubs follow newer Pythons than the oldest one supported here, so arrays have no type.
Array: TypeAlias = Any
