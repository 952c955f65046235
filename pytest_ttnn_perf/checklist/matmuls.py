"""What matrix products are set up to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.attributes import setting
from pytest_ttnn_perf.model.category import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Op

#: Why rules about matrix products say nothing of a program without any.
NO_MATMULS: Final = "no matmuls"


def is_matmul(op: Op) -> bool:
    """Tell whether an op is a matrix product, whatever is fused into it."""
    return category_of(op.signature.op) is Category.MATMUL


def is_sparse(op: Op) -> bool:
    """Tell whether a product skips blocks: its operands say more than it reads and computes."""
    return "sparse" in op.signature.op.lower()


def program_config(op: Op) -> str | None:
    """Return the type of a product's program config: "" if it has none, None if not told."""
    found = setting(op.attributes, "program_config")
    return setting(op.attributes, "config") if found is None else found


def is_dram_sharded(op: Op) -> bool:
    """Tell whether a product reads weights that are cut to the banks of DRAM."""
    return "DRAMSharded" in (program_config(op) or "")
