"""Laws of which inputs are taken for activations, whatever ran."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.operands import activation_reads
from tests.analysis.rules.tables import on_host, op, table, tensor
from tests.properties.strategies import MANY

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import Op, OpTable, Tensor

_TENSORS = st.sampled_from([tensor(1, 1, 32, 32 * width) for width in range(1, 5)])
_OPERANDS = st.lists(_TENSORS, max_size=2)
_CODES = st.sampled_from(["Unary", "Matmul", "UpdateCache"])
_ROWS = st.lists(
    st.builds(op, _CODES, _OPERANDS, _OPERANDS, device=st.integers(0, 1))
    | st.just(on_host("(torch) argmax")),
    max_size=12,
)


def one_by_one(ops: OpTable) -> Counter[tuple[Op, tuple[Tensor, ...]]]:
    """Count what each op reads, as the definition has it."""
    rows = [row for row in ops if not row.host]
    caches = {made for row in rows if "Cache" in row.signature.op for made in row.signature.outputs}
    found: Counter[tuple[Op, tuple[Tensor, ...]]] = Counter()
    for at, row in enumerate(rows):
        before = [other.signature for other in rows[:at] if other.device == row.device]
        made = {tensor for signature in before for tensor in signature.outputs} - caches
        found[row, tuple(tensor for tensor in row.signature.inputs if tensor in made)] += 1
    return found


@MANY
@given(_ROWS)
def test_an_op_reads_what_ops_before_it_made(rows: list[Op]) -> None:
    ops = table(*rows)
    assert Counter(activation_reads(ops)) == one_by_one(ops)
