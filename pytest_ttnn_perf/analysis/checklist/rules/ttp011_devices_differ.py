"""Devices that did not run the same ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.validity import device_differences
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_NONE: Final = Limit(0, "devices", "the devices of a mesh run one program")


@rule("TTP011", "devices-differ", Severity.WARNING, Input.OPS)
def devices_differ(ops: OpTable) -> Answer:
    """The devices of a mesh ran different ops.

    ## What it finds
    Devices whose ops, by their codes and in their order, are not those of most devices, in
    the first step of a region: a replay of a trace, a window of signposts, or else everything.

    ## Why it matters
    What one device took longer than another is then no imbalance, and what it waited is not known:
    TTP703 and TTP704 compare unlike work. Times of one device, and the time of the slowest, hold.

    ## What to do
    If the program is meant to be the same everywhere, the profiler lost ops of a device: profile
    fewer ops at a time. Set signposts around what runs on all devices, so that what runs on one
    alone, such as a reference, stays outside.

    ## When it is no problem
    Pipelines that give each device its own part of a model.

    ## Where it looks
    OP CODE and DEVICE ID of the op table.
    """
    if len(ops.devices) < 2:
        return Answer.not_applicable("one device")
    odd = device_differences(ops)
    devices = sorted({each.device for each in odd})
    if not odd:
        return _NONE.clean(0)
    told = f"{len(devices)} of {counted(len(ops.devices), 'device')} ran other ops than the rest"
    evidence = (
        Evidence(f"{each.where}: device {each.device}, {each.found}; most: {each.usual}")
        for each in odd
    )
    return _NONE.found(len(devices), told, evidence)
