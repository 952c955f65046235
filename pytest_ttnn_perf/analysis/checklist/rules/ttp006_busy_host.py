"""A machine that had other things to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, Trouble, found_troubles, rule
from pytest_ttnn_perf.records.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.hardware import Hardware, Scalar
    from pytest_ttnn_perf.records.observation import Observation

#: What is looked at, by the name of the fact.
_FACTS: Final = (
    "load_1m", "governor", "clock_mhz", "thermal_trips", "throttled", "device_processes",
)  # fmt: skip
#: The clock at work, in MHz.
_CLOCKS: Final = {"wormhole_b0": 1000.0, "blackhole": 1350.0}
#: Systems of one chip: on others the slowest clock may be of a chip that the test does not use.
_ONE_CHIP: Final = frozenset({"n150", "p100", "p150"})


@rule("TTP006", "busy-host", Severity.WARNING)
def busy_host(
    observation: Observation | None,
    facts: Mapping[str, Scalar],
    *,
    load: Limit = Limit(0.5, "of the processors", "beyond it samples wait for a core"),
    clock: Limit = Limit(0.95, "of the chip's clock", "a chip at work runs at its full"),
) -> Answer:
    """The machine was busy, or held back, while times were taken.

    ## What it finds
    Other work on the processors, a frequency governor that saves power, a chip below its clock or
    throttled for heat, and other processes that hold a chip.

    ## Why it matters
    Times then depend on what else the machine does, and say little about the model.

    ## What to do
    Measure on a machine that does nothing else, with `cpupower frequency-set -g performance`. Look
    at the cooling of a chip that throttles.

    ## When it is no problem
    Where only device times are gated: the load of the host does not change those.

    ## Where it looks
    `load_1m`, `runnable_threads`, `cpu_count` and `governor` of the host right after the samples.
    The load of the last minute counts what the test itself did before, and the threads that are
    about to run at one moment may be there by chance: the lesser of both is judged. `clock_mhz`,
    `thermal_trips` (since the chip was last reset), `throttled` and `device_processes` as the
    driver and tt-smi tell them. The clock is judged on systems of one chip only.
    """
    hardware = observation.hardware if observation else None
    facts = {**(observation.environment if observation else {}), **facts}
    known = [name for name in _FACTS if facts.get(name) is not None]
    if not known:
        return Answer.not_measured("nothing is known of the load, the governor or the chips")
    troubles = [*_of_host(facts, load), *_of_clock(facts, hardware, clock), *_of_chips(facts)]
    return (
        found_troubles(troubles)
        if troubles
        else Answer.clean(reason=f"known from {', '.join(known)}")
    )


def _of_host(facts: Mapping[str, Scalar], limit: Limit) -> Iterator[Trouble]:
    load, processors = _number(facts, "load_1m"), _number(facts, "cpu_count")
    others = _number(facts, "runnable_threads")
    if load is not None and processors:
        busy = load if others is None else min(load, others)
        if busy / processors > limit.value:
            text = f"load {load:g} on {counted(int(processors), 'processor')}"
            if others is not None:
                text += f", {counted(int(others), 'other thread')} about to run"
            yield Trouble(text, busy / processors, limit.value, limit.unit)
    governor = facts.get("governor")
    if governor not in {None, "performance"}:
        yield Trouble(f"the frequency governor is {governor}")


def _of_clock(
    facts: Mapping[str, Scalar], hardware: Hardware | None, limit: Limit
) -> Iterator[Trouble]:
    clock = _number(facts, "clock_mhz")
    if hardware is None or clock is None or hardware.board not in _ONE_CHIP:
        return
    full = _CLOCKS.get(hardware.arch)
    if full and clock / full < limit.value:
        text = f"the chip runs at {clock:g} MHz, not at {full:g}"
        yield Trouble(text, clock / full, limit.value, limit.unit)


def _of_chips(facts: Mapping[str, Scalar]) -> Iterator[Trouble]:
    trips, holders = _number(facts, "thermal_trips"), _number(facts, "device_processes")
    if trips:
        yield Trouble(
            f"a chip grew too hot: {counted(int(trips), 'thermal trip')}", trips, 0, "trips"
        )
    if facts.get("throttled") is True:
        yield Trouble("a chip is throttled")
    if holders is not None and holders > 1:
        yield Trouble(f"{holders:g} processes hold a chip", holders, 1, "processes")


def _number(facts: Mapping[str, Scalar], name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, (int, float)) else None
