"""What holds for the attribution of any two op tables."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    Cause,
    ChangeKind,
    Part,
    common_subsequence,
)
from pytest_ttnn_perf.analysis.show.attribution import shown_sum, waterfall_of
from pytest_ttnn_perf.core.ops import HOST, Op, Signature
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, changed, op, resized, retyped, table
from tests.properties.strategies import FEW, SOME

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

LONGER = resized(NORM, padded=(1, 1, 64, 1024), logical=(1, 1, 50, 1024))
UNTOLD = resized(NORM, padded=(1, 1, 32, 1024), logical=None)
BINARY = NORM._replace(op="BinaryNgDeviceOperation")
SIGNATURES = st.sampled_from([
    MATMUL, retyped(MATMUL, "BFLOAT8_B"), NORM, LONGER, UNTOLD, RESHARD, BINARY,
    RESHARD._replace(op="Reshard"), Signature("Fold"),
])  # fmt: skip
WHOLE_NS = st.integers(0, 2_000_000).map(float)
ANY_NS = WHOLE_NS | st.floats(0, 1e12) | st.sampled_from([0.1, 1e-9, 1e30, 1e100])
ATTRIBUTES = st.sampled_from(["", "in0_block_w=2", "in0_block_w=4", "binary_op_type=T::ADD"])
REPLAYS = st.none() | st.tuples(st.integers(0, 1), st.integers(0, 2))


def ops(
    times: SearchStrategy[float] = WHOLE_NS, devices: SearchStrategy[int] | None = None
) -> SearchStrategy[Op]:
    """Draw a row."""
    return st.builds(
        op,
        SIGNATURES,
        times,
        device=devices if devices is not None else st.sampled_from([0, 0, 0, 1, 5, HOST]),
        cores=st.sampled_from([None, 32, 64]),
        fidelity=st.sampled_from([None, "HiFi4", "LoFi"]),
        attributes=ATTRIBUTES,
        replay=REPLAYS,
    )


@st.composite
def pairs(
    draw: DrawFn,
    times: SearchStrategy[float] = WHOLE_NS,
    devices: SearchStrategy[int] | None = None,
) -> tuple[list[Op], list[Op]]:
    """Draw the rows of two captures, of which the second is often an edited copy of the first."""
    row = ops(times, devices)
    before = draw(st.lists(row, max_size=25))
    if draw(st.booleans()):
        return before, draw(st.lists(row, max_size=25))
    after = list(before)
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(after)))
        match draw(st.sampled_from(["insert", "delete", "change"])):
            case "insert":
                after.insert(place, draw(row))
            case "delete":
                del after[place : place + 1]
            case _:
                after[place : place + 1] = [draw(row)]
    return before, after


def compared(both: tuple[list[Op], list[Op]]) -> Attribution:
    before, after = both
    return changed(table(before), table(after))


def mirrored(part: Part) -> Part:
    """Return the part that the swapped tables should have; its names may be of the other side."""
    opposite = {
        ChangeKind.SLOWER: ChangeKind.FASTER,
        ChangeKind.FASTER: ChangeKind.SLOWER,
        ChangeKind.ADDED: ChangeKind.REMOVED,
        ChangeKind.REMOVED: ChangeKind.ADDED,
    }
    return replace(
        nameless(part),
        change=part.change if part.within_noise and not part.delta_ns else opposite[part.change],
        delta_ns=-part.delta_ns,
        causes=tuple(Cause(cause.what, cause.after, cause.before) for cause in part.causes),
    )


def nameless(part: Part) -> Part:
    return replace(part, op="", signature="", shape="", before_ns=0.0, name="")


@SOME
@given(pairs(ANY_NS))
def test_the_parts_add_up_to_the_change_exactly(both: tuple[list[Op], list[Op]]) -> None:
    attribution = compared(both)
    figures = [*(part.delta_ns for part in attribution.parts), attribution.unexplained_ns]
    assert attribution.delta_ns == sum(figures) == sum(reversed(figures))


@SOME
@given(pairs(ANY_NS))
def test_swapping_the_tables_negates_everything(both: tuple[list[Op], list[Op]]) -> None:
    there, back = compared(both), compared((both[1], both[0]))
    assert (back.before_ns, back.after_ns) == (there.after_ns, there.before_ns)
    assert back.unexplained_ns == -there.unexplained_ns
    assert Counter(map(nameless, back.parts)) == Counter(map(mirrored, there.parts))


@SOME
@given(st.lists(st.integers(0, 4), max_size=40), st.lists(st.integers(0, 4), max_size=40))
def test_a_common_subsequence_is_the_longest(a: list[int], b: list[int]) -> None:
    pairs = common_subsequence(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    row = [0] * (len(b) + 1)
    for item in a:
        last, row = row, [0]
        for j, other in enumerate(b):
            row.append(last[j] + 1 if item == other else max(last[j + 1], row[j]))
    assert len(pairs) == row[-1]


@SOME
@given(st.lists(st.floats(-1e12, 1e12), max_size=12), st.integers(1, 6))
def test_a_shown_sum_adds_up(terms: list[float], digits: int) -> None:
    total, shown = shown_sum(terms, digits=digits)
    figures = [float(each.split()[0]) for each in shown]
    assert abs(sum(figures) - float(total.split()[0])) < 1e-6 * max([1.0, *map(abs, figures)])
    assert {each.split()[1] for each in shown} <= {total.split()[1]}


@FEW
@given(pairs(), st.integers(-10_000, 10_000))
def test_steps_of_a_waterfall_lead_from_before_to_after(
    captures: tuple[list[Op], list[Op]], besides_ns: int
) -> None:
    before, after = map(table, captures)
    found = changed(before, after)
    # Times may be of other sessions than the tables: what they differ by is left to other ops.
    after_ns = max(found.after_ns + besides_ns, 0.0)
    left_ns = found.unexplained_ns + after_ns - found.after_ns
    drawn = waterfall_of(replace(found, after_ns=after_ns, unexplained_ns=left_ns), "time")
    assert abs(drawn["before_us"] - found.before_ns / 1000) <= 0.000501
    assert abs(drawn["after_us"] - after_ns / 1000) <= 0.000501
    steps_ns = [round(part["change_us"] * 1000) for part in drawn["parts"]]
    assert round(drawn["before_us"] * 1000) + sum(steps_ns) == round(drawn["after_us"] * 1000)
    assert 0 not in steps_ns
