"""What holds for the groups of any op table, and for what is said of two of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.ops.names import condense_settings, function_in, settings_in
from tests.analysis.ops.tables import changed, grouped, table
from tests.properties.strategies import MANY, SOME
from tests.properties.test_attribution import ops

if TYPE_CHECKING:
    from random import Random

    from pytest_ttnn_perf.core.ops import Op, OpGroups

ROWS = st.lists(ops(), max_size=25)
#: Pieces of attributes as releases print them, and what is none.
WORDS = st.sampled_from([
    "{'program_config': 'MatmulConfig(in0_block_w=2;", "per_core_M=4;", "'mcast_in0': 'true'",
    "compute_with_storage_grid_size=(x=8;y=7);", "grid_size=8-7", "fuse_batch=0", "num_links: 2",
    "op_type=UnaryOpType::GELU;", "op_type=UnaryOpType::SILU;", "param={0}", "})'}", "; ",
    "'binary_op_type': 'BinaryOpType::ADD'", "ternary_op_type=T::WHERE", "'activation': 'x'",
    "'topology': 'ttnn::ccl::Topology::Ring'", "chunks_per_sync=std::nullopt", "in0_block_w=4",
])  # fmt: skip


def groups_of(rows: list[Op]) -> OpGroups:
    return grouped(table(rows))


def total_ns(groups: OpGroups) -> float:
    return sum(group.total_ns for group in groups.groups)


def rounding_ns(groups: OpGroups) -> float:
    """Return how far off a sum may be: each group is rounded, and the whole to a unit."""
    return 0.0005 * len(groups.groups) + 2**-10


@SOME
@given(ROWS)
def test_the_groups_add_up_to_the_total_of_the_table(rows: list[Op]) -> None:
    groups = groups_of(rows)
    whole = changed(table(rows), table(rows))
    assert total_ns(groups) == pytest.approx(whole.before_ns, abs=rounding_ns(groups))


@SOME
@given(st.lists(ops(), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_no_group(rows: list[Op], random: Random) -> None:
    untraced = [row._replace(trace=None, replay=None) for row in rows]
    shuffled = list(untraced)
    random.shuffle(shuffled)
    assert Counter(groups_of(shuffled).groups) == Counter(groups_of(untraced).groups)


@MANY
@given(st.lists(WORDS, max_size=8).map(" ".join))
def test_condensed_attributes_tell_the_same(text: str) -> None:
    short = condense_settings(text)
    assert settings_in(short) == settings_in(text)
    assert function_in(short) == function_in(text)
    assert condense_settings(short) == short
