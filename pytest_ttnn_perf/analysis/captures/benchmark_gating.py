"""What the rest of a benchmark's results tells of one number: is it gated, is it a setting."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.measure.quantiles import least_count
from pytest_ttnn_perf.records.known_measurements import percentile_of, same_as
from pytest_ttnn_perf.records.metric import Kind

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.benchmark import BenchmarkRun
    from pytest_ttnn_perf.records.metric import Metric

#: Measured while a model is fed the tokens of a reference; tt-metal knows such runs by these too.
_TOKEN_ACCURACY: Final = frozenset({"top1_token_accuracy", "top5_token_accuracy"})
_FORCED: Final = "measured while the tokens of a reference are fed, which is no real decoding"


def is_forced(benchmark: BenchmarkRun) -> bool:
    """Return whether the tokens of a reference are fed."""
    return any(measurement.name in _TOKEN_ACCURACY for measurement in benchmark.measurements)


def why_ungated(benchmark: BenchmarkRun, metric: Metric, name: str, step: str) -> str | None:
    """Say why a measurement that is known to be a result is not gated in this benchmark."""
    if metric.kind is not Kind.ACCURACY and is_forced(benchmark):
        return _FORCED
    measured = {m.name for m in benchmark.measurements if m.step_name == step and isfinite(m.value)}
    source = next((other for other in same_as(name) if other in measured), None)
    if source is not None:
        return f"{source} says the same"
    percent = percentile_of(name)
    return None if percent is None else _too_few(benchmark, name, percent)


def _too_few(benchmark: BenchmarkRun, name: str, percent: float) -> str | None:
    """Say that a percentile is one of too few values to be one; None if there are enough."""
    if not 0 < percent < 100:
        return "a minimum or maximum"
    fraction = percent / 100
    needed = least_count(max(fraction, 1 - fraction))
    what, count = "requests", _number(benchmark, "completed", "num_prompts", "num_requests")
    if "_itl_" in name and count is not None:  # between tokens, of which a request has many
        tokens = _number(benchmark, "total_output_tokens")
        what, count = "tokens", None if tokens is None else tokens - count
    if count is None:
        return f"a percentile, and the file does not say of how many {what}"
    if count >= needed:
        return None
    return f"p{percent:g} needs at least {needed} {what}, and there are {max(count, 0):g}"


def _number(benchmark: BenchmarkRun, *names: str) -> float | None:
    """Return a number that was measured, or stands among the settings."""
    config = benchmark.config_params or {}
    for name in names:
        found = [m.value for m in benchmark.measurements if m.name == name and isfinite(m.value)]
        if found:
            return found[0]
        value = config.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


def is_volatile(name: str, value: object) -> bool:
    """Return whether a member of the settings is another in every run, and no setting.

    >>> is_volatile("run_id", 17), is_volatile("started", "2026-11-02T09:00:00"), is_volatile(
    ...     "model_id", "llama"), is_volatile("cache", "/home/me/.cache")
    (True, True, False, True)
    """
    if not isinstance(value, bool) and _VOLATILE_NAME.fullmatch(name.lower()):
        return True
    return isinstance(value, str) and _VOLATILE_VALUE.fullmatch(value.strip()) is not None


#: When, where, by whom and from which sources something was run; ids of single runs. Words that
#: settings end with too, as in sample_on_host and tokens_per_user, have to stand alone.
_VOLATILE_NAME: Final = re.compile(
    r"(?:.*_)?(?:timestamp|ts|date|datetime|start_time|end_time|hostname|uuid|username|commit"
    r"|commit_hash|sha|git_branch"
    r"|(?:run|job|pipeline|session|build|request|container|workflow)_(?:id|number|url|link))"
    r"|host|host_name|ip|ip_address|device_ip|pid|port|user|user_name|branch"
)
#: A time, a UUID, a path of one machine, or an address.
_VOLATILE_VALUE: Final = re.compile(
    r"20\d\d-?[01]\d-?[0-3]\d(?:[T _-]\d\d.*)?"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?:~|[A-Za-z]:)?[/\\].+|[a-z]+://.+",
    re.DOTALL,
)
