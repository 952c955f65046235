"""A capture, and the records of two runs, in pandas: what a notebook would do cell by cell."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_ttnn_perf import frames

CAPTURES = Path(__file__).parent / "captures"


def main(records: str | None = None) -> None:
    # %% Where does the time go?
    ops = frames.ops(CAPTURES / "before.csv")
    by_category = ops.groupby("category", observed=True)["kernel_ns"].agg(["count", "sum"])
    print(by_category.sort_values("sum", ascending=False), end="\n\n")

    # %% Which ops read from DRAM?
    from_dram = ops[ops["input_memory"].str.contains("DRAM")]
    print(f"{len(from_dram)} of {len(ops)} ops", end="\n\n")

    # %% How did a metric move from run to run?
    if records is not None:
        runs = frames.runs(records)
        print(runs.pivot_table(index=["test", "metric"], columns="run", values="value"))


if __name__ == "__main__":
    main(*sys.argv[1:2])
