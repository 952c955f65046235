"""How near prefill and decode of a language model come to the peaks of the board."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.records.metric import Better, Kind, Metric, median
from pytest_ttnn_perf.records.observation import MetricObservation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.observe.tokens import TokenLog
    from pytest_ttnn_perf.records.observation import Observation

#: A measured time may be that much shorter than the least: clocks are not exact.
_MOST: Final = 1.05
#: The fact that asks for the figure of a phase.
_STATED: Final = {"prefill": "params", "decode": "weight_bytes"}


def with_rooflines(observation: Observation, log: TokenLog) -> Observation:
    """Return an observation with the part of the peaks that was used, or why it is not known."""
    found = {observed.metric.name: observed for observed in _rooflines(observation, log)}
    return replace(observation, metrics={**observation.metrics, **found})


def _rooflines(observation: Observation, log: TokenLog) -> Iterator[MetricObservation]:
    for mode in dict.fromkeys(each.conditions.mode for each in log.generations):
        conditions = next(g.conditions for g in log.generations if g.conditions.mode == mode)
        for phase, timed in (("prefill", "time_to_first_token"), ("decode", "inter_token_time")):
            observed = observation.metrics.get(f"{mode}_{timed}")
            if observed is None or not observed.samples or _STATED[phase] not in observation.facts:
                continue  # nobody asked
            name = f"{mode}_{phase}_roofline"
            metric = replace(
                Metric(name, "%", Better.HIGHER, Kind.THROUGHPUT), source=observed.metric.source
            )
            tokens = (conditions.prompt_tokens or 0) * conditions.users
            least_ns = _least_ns(observation, phase, tokens)
            if isinstance(least_ns, str):
                yield MetricObservation(metric, (), gated=False, note=f"{phase}: {least_ns}")
                continue
            used = least_ns / median(observed.samples)
            if used > _MOST:
                note = (
                    f"{phase}: {100 * used:.0f} % of the peak cannot be: look at the stated facts"
                )
                yield MetricObservation(metric, (), gated=False, note=note)
            else:
                yield MetricObservation(metric, (100 * used,), gated=False)


def _least_ns(observation: Observation, phase: str, tokens: int) -> float | str:
    """Return the least time of a phase; or what is missing to tell it."""
    hardware = observation.hardware
    board = board_of_arch(hardware.arch) if hardware else None
    if hardware is None or board is None or hardware.simulated:
        return "the peaks of this hardware are not known"
    setting, chips = observation.setting.values, _product(hardware.mesh or "1") or 1
    if phase == "decode":
        size = setting.get("weight_bytes")
        if not isinstance(size, (int, float)) or isinstance(size, bool) or size <= 0:
            return "needs facts(weight_bytes=...), the bytes of weights that a step reads"
        return size / (board.dram_gb_s * chips)  # GB/s are bytes in a ns
    params, fidelity = setting.get("params"), setting.get("math_fidelity")
    cores = _product(str(setting.get("cores") or setting.get("grid") or ""))
    return _prefill_ns(board, cores * chips, tokens, params, fidelity)


def _prefill_ns(
    board: Board, cores: int, tokens: int, params: object, fidelity: object
) -> float | str:
    """Return the least time of two floating-point operations per weight and token."""
    if not isinstance(params, (int, float)) or isinstance(params, bool) or params <= 0:
        return "needs facts(params=...), the weights that a token meets"
    peak = board.tflops.get(fidelity) if isinstance(fidelity, str) else None
    if peak is None:
        return f"needs facts(math_fidelity=...), one of {', '.join(board.tflops)}"
    if not cores:
        return "needs facts(cores=...), the cores of a chip that compute"
    return 2 * params * tokens / (peak * cores * 1000)  # TFLOPS are thousands in a ns


def _product(sizes: str) -> int:
    """Return how many a shape such as ``8x7`` has; 0 for what is none."""
    parts = sizes.split("x")
    return prod(map(int, parts)) if all(part.isdecimal() for part in parts) else 0
