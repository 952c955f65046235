"""Settings of a test: observed of its device, completed by what its author stated as facts.

The facts that rules know: ``use_trace``, ``dynamic_shapes``, ``trace_region_size``,
``num_command_queues``, ``program_cache``, ``tt_xla``, ``optimization_level``, and the variables of
tt-xla's runtime under their own names. A fact with the value None says: looked for, and not set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.subject import Subject

_OFF: Final = frozenset({"", "0", "false", "off", "no", "none"})


def settings_of(subject: Subject) -> Mapping[str, Scalar]:
    """Return all that is known by name."""
    observed = subject.observation.setting.values if subject.observation is not None else {}
    return {**observed, **subject.facts}


def is_on(value: Scalar) -> bool:
    """Return whether a switch is on, however it is spelt.

    >>> is_on("1"), is_on("False"), is_on(None), is_on(value=True)
    (True, False, False, True)
    """
    return value.strip().lower() not in _OFF if isinstance(value, str) else bool(value)


def number(value: Scalar) -> float | None:
    """Return a setting as a number; None where it is none.

    >>> number("10000000"), number(2), number("auto")
    (10000000.0, 2.0, None)
    """
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def uses_trace(subject: Subject) -> bool | None:
    """Tell whether a model runs from a trace: seen in its ops, or stated; None where neither is.

    Ops of which none is traced say no, unless ``use_trace`` is stated.
    """
    ops = subject.ops
    if ops is not None and any(trace is not None for trace in ops.columns.trace):
        return True
    settings = settings_of(subject)
    if "use_trace" in settings:
        return is_on(settings["use_trace"])
    return False if ops is not None and len(ops) else None
