"""Kernels that wait for memory and use little of its bandwidth."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttlang import TtlangLog

#: What good kernels reach of the peak.
_REACHED: Final = 0.75


@rule("TTP806", "low-dram-bandwidth", Severity.WARNING, Input.KERNELS)
def low_dram_bandwidth(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.5, "of the DRAM bandwidth", "a choice; good kernels reach 75 %"),
) -> Answer:
    """A kernel is bound by memory, and DRAM is far from busy.

    ## What it finds
    The bytes that programs move from and to DRAM, over their time, as a share of the bandwidth of
    the chip.

    ## Why it matters
    A kernel that is bound by memory at a tenth of the bandwidth waits for single transfers, not for
    DRAM. It could be several times as fast with the same bytes.

    ## What to do
    Keep more transfers in flight: several copies before a wait (TTP805), dataflow buffers of two
    blocks (TTP808), and more cores that read (TTP801). Move whole tiles (TTP803), and read from all
    channels of DRAM.

    ## When it is no problem
    Kernels that compute, or that run so briefly that starting them takes most of their time.

    ## Where it looks
    `DRAM read`, `DRAM write` and `duration` of tt-lang's PERF SUMMARY, and the bandwidth of the
    architecture that it names. Whether a kernel is bound by memory is told by ROOFLINE ANALYSIS;
    without one this is information, and no saving is said; nor of several programs.
    """
    programs = kernels_of(kernels)
    if isinstance(programs, str):
        return Answer.not_measured(programs)
    line = roofline_of(kernels)
    if not isinstance(line, str) and line.bound == "compute":
        return Answer.not_applicable("the kernel is bound by compute (TTP804)")
    boards = {kernel: board_of_arch(kernel.arch) for kernel in programs if kernel.time_ns}
    peaks = {kernel: board.dram_gb_s for kernel, board in boards.items() if board is not None}
    if not peaks:
        return Answer.not_measured("the bandwidth of the chip is not known: the log names no chip")
    possible = sum(kernel.time_ns * peak for kernel, peak in peaks.items())
    part = sum(kernel.dram_bytes for kernel in peaks) / possible
    reached = {kernel: kernel.dram_bytes / kernel.time_ns / peak for kernel, peak in peaks.items()}
    answer = share.at_least(
        part,
        f"programs move {percent(part)} of what DRAM could move in that time",
        (
            Evidence(f"{kernel}: {percent(reached[kernel])} of {peaks[kernel]:g} GB/s",
                     kernel.dram_bytes / kernel.time_ns, "GB/s")
            for kernel in sorted(peaks, key=lambda kernel: -kernel.time_ns)
        ),
    )  # fmt: skip
    if isinstance(line, str):
        return replace(answer, severity=Severity.INFO)  # it may well compute
    if len(programs) > 1:
        return answer  # the profile is of one of them, and does not say of which
    saved = (
        kernel.time_ns - kernel.dram_bytes / (_REACHED * peak) for kernel, peak in peaks.items()
    )
    waiting_ns = sum(max(0.0, each) for each in saved)
    return answer.saving({}, "time − DRAM bytes / (0.75 × peak)", waiting_ns=waiting_ns)
