"""What matrix products are set up to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.attributes import setting
from pytest_ttnn_perf.model.category import Category, category_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Op, Signature

#: Why rules about matrix products say nothing of a program without any.
NO_MATMULS: Final = "no matmuls"


def is_matmul(signature: Signature) -> bool:
    """Tell whether an op is a matrix product, whatever is fused into it."""
    return category_of(signature.op) is Category.MATMUL


def is_dense_matmul(signature: Signature) -> bool:
    """Tell whether a product skips no blocks: its operands say what it reads and computes."""
    return is_matmul(signature) and "sparse" not in signature.op.lower()


def program_config(op: Op) -> str | None:
    """Return the type of a product's program config: "" if it has none, None if not told."""
    found = setting(op.attributes, "program_config")
    return setting(op.attributes, "config") if found is None else found


def is_dram_sharded(op: Op) -> bool:
    """Tell whether a product reads weights that are cut to the banks of DRAM."""
    return "DRAMSharded" in (program_config(op) or "")
