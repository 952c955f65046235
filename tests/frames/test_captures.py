"""``frames.ops``: the same ops and sums as the command line shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from pytest_ttnn_perf import frames
from tests.harness.captures import VARIETY, capture, op, signpost
from tests.harness.corpus import corpus
from tests.harness.project import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Replays that ran different ops: their sums are told of with a warning.
LOST = "ops_perf/qwen_27b_linear_incomplete_replays.csv"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*rows: dict[str, str], name: str = "ops.csv") -> Path:
        file = tmp_path / name
        file.write_text(capture(*rows))
        return file

    return written


def test_a_row_per_op_in_order(write: Callable[..., Path]) -> None:
    file = write(
        op("Matmul", 4000),
        op("Conv2d", 6000.5, {"DEVICE ID": "1", "MATH FIDELITY": "", "CORE COUNT": ""}),
    )

    frame = frames.ops(file)

    assert frame["op"].tolist() == ["Matmul", "Conv2d"]
    assert frame["category"].tolist() == ["matmul", "conv"]
    assert frame["device"].tolist() == [0, 1]
    assert frame["kernel_ns"].tolist() == [4000, 6000.5]
    assert frame["gap_ns"].tolist() == [500, 500]
    assert frame["cores"].tolist() == [64, pd.NA]
    assert frame["fidelity"].isna().tolist() == [False, True]
    assert frame["input_shapes"].tolist() == ["1x1x1024[1000]x512"] * 2
    assert frame["input_memory"].tolist() == ["L1_HEIGHT_SHARDED"] * 2
    assert frame["output_shapes"].tolist() == ["", ""]
    assert frame["trace"].isna().all()
    assert frame.attrs["arch"] == "wormhole_b0"


def test_types_and_columns_do_not_depend_on_what_there_is(write: Callable[..., Path]) -> None:
    full, empty = frames.ops(write(op("Matmul", 1))), frames.ops(write(signpost("start")))
    assert list(full) == list(empty) == list(frames.COLUMNS["ops"])
    assert (len(full), len(empty)) == (1, 0)
    kinds = {name: dtype.name for name, dtype in full.dtypes.items()}
    assert {name: dtype.name for name, dtype in empty.dtypes.items()} == kinds
    assert kinds["cores"] == kinds["device"] == "Int64"
    assert kinds["kernel_ns"] == "float64"
    assert kinds["op"] == "category"


def test_what_is_no_capture_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(frames.InputError, match="cannot read: No such file"):
        frames.ops(tmp_path / "none.csv")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(frames.InputError, match=r"notes\.txt: its format is not known"):
        frames.ops(str(tmp_path / "notes.txt"))
    with pytest.raises(frames.UsageError, match="expected the path of a file or folder, found int"):
        frames.ops(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*VARIETY, LOST])
def test_real_captures_have_the_ops_and_sums_that_show_tells(name: str) -> None:
    file = corpus(name)
    shown = json.loads(run_command("show", str(file), "--format", "json").text)

    if name == LOST:
        with pytest.warns(UserWarning, match="can be trusted: the replays of trace 0"):
            frame = frames.ops(file)
    else:
        frame = frames.ops(file)

    assert len(frame) == shown["ops"]
    by_device = frame.groupby("device")["kernel_ns"].sum()
    assert {str(device): ns for device, ns in by_device.items()} == pytest.approx(
        shown["device_kernel_time_ns"]
    )
    by_op = frame.groupby("op", observed=True)["kernel_ns"].agg(["count", "sum", "median"])
    told = {each["op"]: (each["count"], each["total_ns"], each["median_ns"])
            for each in shown["by_op"]}  # fmt: skip
    assert set(by_op.index) == set(told)
    for each, row in by_op.iterrows():
        assert tuple(row) == pytest.approx(told[str(each)])
