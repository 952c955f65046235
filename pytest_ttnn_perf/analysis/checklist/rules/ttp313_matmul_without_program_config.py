"""Matmuls that leave their program config to TTNN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP313", "matmul-without-program-config", Severity.INFO, Input.OPS)
def matmul_without_program_config(
    ops: OpTable,
    *,
    share: Limit = Limit(0.05, "of kernel time", "a judgement: less is not worth it"),
) -> Answer:
    """Matmuls run without a program config.

    ## What it finds
    The share of the kernel time in matmuls whose attributes say that no program config was set.

    ## Why it matters
    TTNN then chooses cores and blocks by rules of thumb, which have to work for every shape.

    ## What to do
    Give the matmuls that take most time a program config of their own. Start from the one that TTNN
    chooses and try larger blocks and grids.

    ## When it is no problem
    Where the choice of TTNN is good already: compare with the efficiency of matmuls. Some releases
    of TTNN record the config that they chose themselves, so that a matmul without one cannot be
    told from a matmul with one.

    ## Where it looks
    `program_config` in ATTRIBUTES, and the kernel time of the op table.
    """
    matmuls = ops_like(ops, is_matmul)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    configs = [program_config(op) for op in matmuls]
    if all(config is None for config in configs):
        return Answer.not_measured("the attributes of matmuls do not tell a program config")
    without = [op for op, config in zip(matmuls, configs, strict=True) if config == ""]
    part = share_of(ops, without)
    return part.at_most(
        share,
        f"without a program config: {part.count} of {counted(len(matmuls), 'matmul')}, "
        f"{percent(part.fraction)} of the kernel time",
    )
