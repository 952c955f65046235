"""Matmuls that leave their program config to TTNN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.parallelism import few_cores
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    gains_from_dram_sharding,
    matmuls_of,
    no_roofline,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.analysis.ops.roofline import board_of
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import Report


@rule("TTP313", "matmul-without-program-config", Severity.INFO, Input.OPS)
def matmul_without_program_config(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    efficiency: Limit = Limit(0.5, "of the roofline", "see TTP314"),
) -> Answer:
    """Matmuls run without a program config, far from what the device allows.

    ## What it finds
    Matmuls whose attributes say that no program config was set, and that take more than twice what
    moving their operands or computing takes at full speed.

    ## Why it matters
    TTNN then chooses cores and blocks by rules of thumb, which have to work for every shape.

    ## What to do
    Give the matmuls that take most time a program config of their own. Start from the one that TTNN
    chooses and try larger blocks and grids.

    ## What it saves
    The time of the matmul, less twice what it takes at full speed.

    ## When it is no problem
    Where the choice of TTNN is good already: such matmuls are not named. Some releases of TTNN
    record the config that they chose themselves, so that a matmul without one cannot be told from a
    matmul with one. Matmuls that gain from DRAM-sharded weights are left
    to TTP311, those on few cores to TTP305.

    ## Where it looks
    `program_config` in ATTRIBUTES, the operands and the kernel time of the op table, on the slowest
    device.
    """
    matmuls, board, on_few = matmuls_of(step), board_of(step), few_cores(step, report)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(program_config(each.op) is None for each in matmuls):
        return Answer.not_measured("the attributes of matmuls do not give a program config")
    if all(each.least_ns is None for each in matmuls):
        return Answer.not_measured(no_roofline(step, "matmul"))
    without = [
        each
        for each in matmuls
        if program_config(each.op) == ""
        and each.row not in on_few
        and not gains_from_dram_sharding(each, board)
        and shortfall_ns(each, efficiency.value)
    ]
    took = sum(each.op.kernel_ns for each in without)
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in without}
    return check_savings(
        step,
        saved,
        share,
        sentence=f"without a program config, and slow: {len(without)} of "
        f"{counted(len(matmuls), 'matmul')}, {microseconds(took)} of a step",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
    )
