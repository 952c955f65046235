"""Any capture, and any damage to one, through the reader of ops CSVs."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers.ops_text import (
    CYCLE,
    GAP,
    HEADER,
    KERNEL,
    REPLAY,
    TRACE,
    Row,
    fallback,
    op,
    read,
    signpost,
    tensor,
    text,
)
from tests.properties.strategies import FEW, SOME

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    import pytest
    from hypothesis.strategies import DrawFn

    from pytest_ttnn_perf.core.ops import OpTable

NAMES = st.text(alphabet="Ab,;\"' \n", min_size=1, max_size=6)
NUMBERS = st.integers(0, 10**7).map(str)
OFTEN = st.sampled_from([True, True, True, True, False])


@st.composite
def ops(draw: DrawFn) -> Row:
    """Draw an op of a few kinds; some with times that cannot be, or none."""
    row = op(
        draw(st.sampled_from(["Matmul", "Conv2d", "Add"])),
        kernel=draw(NUMBERS | st.sampled_from(["", "-5", "nan", "12.5"])),
        device=draw(st.integers(0, 2)),
        gap=draw(NUMBERS | st.sampled_from(["", "-3000000"])),
        cycle=draw(NUMBERS | st.just("")),
        attributes=draw(st.sampled_from(["", "None", "{'a': '1'}", 'x, "y"\nz'])),
        math_fidelity=draw(st.sampled_from(["", "LoFi", "HiFi4"])),
        core_count=draw(st.sampled_from(["", "1", "64"])),
    )
    if draw(OFTEN):
        extents = draw(st.sampled_from([("1[1]", "1[1]", "32[7]", "64[64]"), ("1", "2", "3", "4")]))
        row |= tensor("INPUT_0", *extents) | tensor("OUTPUT_0", *extents)
    if not draw(OFTEN):
        row |= {TRACE: "0", REPLAY: str(draw(st.integers(1, 3)))}
    return row


ROWS = st.lists(ops() | NAMES.map(signpost) | st.just(fallback()), min_size=1, max_size=12)
#: Enough rows for several batches of the reader.
MANY_ROWS = st.tuples(ROWS, st.integers(1, 40)).map(lambda pair: pair[0] * pair[1])


def folder_of(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this test's own; a fixture of the test would be shared by its examples."""
    return factory.mktemp("capture")


def attempted(folder: Path, content: str | bytes) -> OpTable | None:
    """Read a file; None where it is refused. Nothing else may come out."""
    try:
        return read(folder, content)
    except InputError:
        return None


@FEW
@given(rows=MANY_ROWS)
def test_every_row_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    table = read(folder_of(tmp_path_factory), text(rows))
    kept = [row for row in rows if row["OP TYPE"] == "tt_dnn_device" and _counts(row)]
    expected: dict[int, float] = {}
    for row in kept:
        device = int(row["DEVICE ID"])
        expected[device] = expected.get(device, 0.0) + float(row[KERNEL])
    assert table.kernel_ns_by_device == expected
    assert sum(table.columns.host) == sum(row["OP TYPE"] == "python_fallback" for row in rows)
    assert [post.name for post in table.signposts] == [
        row["OP CODE"] for row in rows if row["OP TYPE"] == "signpost"
    ]
    assert table.rows == len(rows)
    assert len(table) + len(table.signposts) + sum(table.dropped.values()) == table.rows
    if not any(REPLAY in row for row in rows):
        assert [only.start_cycle for only in table if not only.host] == [
            int(row[CYCLE]) if row[CYCLE] else None for row in kept
        ]


def _counts(row: Row) -> bool:
    if row[KERNEL] in {"", "nan"} or float(row[KERNEL]) <= 0:
        return False
    gap = float(row[GAP] or 0)
    return not (gap < -1e6 and abs(gap) > float(row[KERNEL]) / 2)


@FEW
@given(
    rows=MANY_ROWS,
    more=st.lists(NAMES, max_size=4, unique_by=str.strip),
    columns=st.randoms(use_true_random=False),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_the_order_of_columns_other_columns_quotes_and_line_ends_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    more: list[str],
    columns: Random,
    quoting: int,
    end: str,
) -> None:
    folder = folder_of(tmp_path_factory)
    others = [f"extra {number} {name}".replace("\n", "") for number, name in enumerate(more)]
    header = [*HEADER, *others]
    columns.shuffle(header)
    changed = [{**row, **dict.fromkeys(others, "1,2")} for row in rows]
    other = read(folder, text(changed, header=header, quoting=quoting, end=end))
    assert other == read(folder, text(rows))


@SOME
@given(rows=ROWS, cut=st.floats(0, 1), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_a_cut_file_is_refused_or_whole_up_to_a_line(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], cut: float, end: str, last: bool
) -> None:
    # A column that counts may be the last one, so that a cut may fall into it.
    header = (*(name for name in HEADER if name != KERNEL), KERNEL) if last else HEADER
    whole = text(rows, header=header, end=end).encode()
    folder = folder_of(tmp_path_factory)
    found = attempted(folder, whole[: round(cut * len(whole))])
    if found is not None:
        assert found == read(folder, text(rows[: found.rows], header=header, end=end))


@SOME
@given(
    rows=ROWS,
    damage=st.lists(
        st.tuples(st.floats(0, 1), st.binary(max_size=8), st.integers(0, 40)), max_size=4
    ),
)
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Row],
    damage: list[tuple[float, bytes, int]],
) -> None:
    content = text(rows).encode()
    for place, more, fewer in damage:
        at = round(place * len(content))
        content = content[:at] + more + content[at + fewer :]
    table = attempted(folder_of(tmp_path_factory), content)
    if table is not None:
        assert len(table) + len(table.signposts) + sum(table.dropped.values()) == table.rows
        assert len(list(table)) == len(table)
