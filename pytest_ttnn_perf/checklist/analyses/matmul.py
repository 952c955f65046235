"""Matrix products: program configs and blocks, and how near they come to their ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import by_time, lost_time
from pytest_ttnn_perf.checklist.attributes import whole as whole_number
from pytest_ttnn_perf.checklist.matmuls import (
    NO_MATMULS,
    is_dense_matmul,
    is_matmul,
    program_config,
)
from pytest_ttnn_perf.checklist.op_times import described, kernel_ns, ops_like
from pytest_ttnn_perf.checklist.rule import not_applicable
from pytest_ttnn_perf.checklist.rules.ttp311_matmul_not_dram_sharded import MatmulNotDramSharded
from pytest_ttnn_perf.checklist.rules.ttp312_small_matmul_blocks import SmallMatmulBlocks
from pytest_ttnn_perf.checklist.rules.ttp313_matmul_without_program_config import (
    MatmulWithoutProgramConfig,
)
from pytest_ttnn_perf.checklist.rules.ttp314_low_matmul_efficiency import LowMatmulEfficiency
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import Op
    from pytest_ttnn_perf.model.subject import Subject

_RULES: Final = {
    "efficiency": LowMatmulEfficiency,
    "without a program config": MatmulWithoutProgramConfig,
    "very small blocks": SmallMatmulBlocks,
    "bound by DRAM, not DRAM-sharded": MatmulNotDramSharded,
}
_OF: Final = "of matmul time"


def _look(subject: Subject) -> Numbers | Answer:
    assert subject.ops is not None
    matmuls = ops_like(subject.ops, is_matmul)
    if not matmuls:
        return not_applicable(NO_MATMULS)
    whole = kernel_ns(subject.ops)
    return judged(
        subject,
        _RULES,
        by_time("program config", matmuls, _config, of=_OF),
        by_time("in0_block_w", matmuls, _inner, of=_OF),
        by_time("matmuls", matmuls, described, whole=whole),
        lost_time(ops_like(subject.ops, is_dense_matmul), whole=whole),
    )


def _config(op: Op) -> str:
    found = program_config(op)
    return (
        "not told"
        if found is None
        else (found or "none").rpartition("::")[2].removesuffix("ProgramConfig")
    )


def _inner(op: Op) -> str:
    tiles = whole_number(op.attributes, "in0_block_w", "K_block_size")
    return "not told" if tiles is None else counted(tiles, "tile")


MATMUL: Final = Kind("matmul", "program configs, blocks and times of matmuls", (Input.OPS,), _look)
