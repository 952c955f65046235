"""What bounds a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of, waiting_part
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.ttlang import Roofline, TtlangLog

#: What takes longer, and what shorter.
_SIDES: Final = {"memory": ("moving data", "computing"), "compute": ("computing", "moving data")}


@rule("TTP804", "bound", Severity.INFO, Input.KERNELS)
def bound(
    kernels: TtlangLog,
    *,
    imbalance: Limit = Limit(0.1, "of the longer work", "a choice: within a tenth is balanced"),
    waiting: Limit = Limit(
        0.5, "of its cycles", "a choice: who waits for most of them is not busy"
    ),
) -> Answer:
    """A kernel is bound by memory or by compute.

    ## What it finds
    Which threads of a kernel work longer without waiting, those that move data or those that
    compute, and by how much: (longer - shorter) / longer.

    ## Why it matters
    Only work on the longer side makes the kernel faster. A change of the bound also explains why an
    optimization stopped helping.

    ## What to do
    Bound by memory: larger transfers (TTP803), fewer barriers (TTP805), read each tile once and
    share it between cores. Bound by compute: more cores (TTP801), a lower math fidelity, fused ops.

    ## When it is no problem
    This is information. Every kernel is bound by something; within the limit it is called balanced.
    Where even the busiest thread waits for most of its cycles (TTP808), neither side binds.

    ## Where it looks
    ROOFLINE ANALYSIS of tt-lang's auto-profile, of the kernel that works longest; the bandwidth
    beside it is from the PERF SUMMARY, if there is one. Early versions of tt-lang count waiting as
    work.
    """
    line = roofline_of(kernels)
    if isinstance(line, str):
        return Answer.not_measured(line)
    least = waiting_part(line)
    if least is not None and least > waiting.value:
        told = f"every thread waits for {percent(least)} or more of its cycles (TTP808)"
        return Answer.not_applicable(f"{told}: neither moving data nor computing binds")
    apart = (line.bound_percent or 0) / 100
    longer, shorter = _SIDES["compute" if line.bound == "compute" else "memory"]
    waits = "" if line.threads else "; this version of tt-lang counts waiting as work"
    return imbalance.at_most(
        apart,
        f"{line.bound}-bound: {shorter} takes {percent(apart)} fewer cycles than {longer}{waits}",
        (*_work(line), *_bandwidth(kernels)),
    )


def _work(line: Roofline) -> Iterator[Evidence]:
    sides = (
        ("memory", line.memory_thread, line.memory_cycles),
        ("compute", line.compute_thread, line.compute_cycles),
    )
    for side, thread, cycles in sides:
        if cycles is not None:
            yield Evidence(f"{side} ({thread})" if thread else side, cycles, "cycles")


def _bandwidth(log: TtlangLog) -> Iterator[Evidence]:
    kernels = kernels_of(log)
    for kernel in [] if isinstance(kernels, str) else kernels:
        if kernel.program.bandwidth_gb_s is not None:
            yield Evidence(f"{kernel}: bandwidth", kernel.program.bandwidth_gb_s, "GB/s")
