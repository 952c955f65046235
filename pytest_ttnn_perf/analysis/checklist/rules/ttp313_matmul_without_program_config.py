"""Matmuls that leave their program config to TTNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_MATMULS,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.analysis.checklist.op_times import ops_like, share_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class MatmulWithoutProgramConfig(Rule):
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

    code: ClassVar[str] = "TTP313"
    name: ClassVar[str] = "matmul-without-program-config"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(0.05, unit="of kernel time", source="a judgement: less is not worth it")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of matmuls without a config with the limit."""
        assert subject.ops is not None
        matmuls = ops_like(subject.ops, is_matmul)
        if not matmuls:
            return not_applicable(NO_MATMULS)
        configs = [program_config(op) for op in matmuls]
        if all(config is None for config in configs):
            return not_measured("the attributes of matmuls do not tell a program config")
        without = [op for op, config in zip(matmuls, configs, strict=True) if config == ""]
        share = share_of(subject.ops, without)
        if share.fraction <= self.share:
            return clean(share.fraction, limit=self.share, unit="of kernel time")
        return found(
            f"without a program config: {share.count} of {counted(len(matmuls), 'matmul')}, "
            f"{percent(share.fraction)} of the kernel time",
            value=share.fraction,
            limit=self.share,
            unit="of kernel time",
            evidence=worst_ops(without, of=share.total_ns),
        )
