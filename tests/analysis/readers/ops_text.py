"""Small captures, as a profiler would write them."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.ops import OpTable

KERNEL = "DEVICE KERNEL DURATION [ns]"
FW = "DEVICE FW DURATION [ns]"
GAP = "OP TO OP LATENCY [ns]"
CYCLE = "DEVICE FW START CYCLE"
TRACE = "METAL TRACE ID"
REPLAY = "METAL TRACE REPLAY SESSION ID"

Row = dict[str, str]


def tensor_columns(name: str, *, suffix: str = "_PAD[LOGICAL]") -> tuple[str, ...]:
    """Return the seven columns of an operand."""
    return (
        *(f"{name}_{dim}{suffix}" for dim in "WZYX"),
        *(f"{name}_{part}" for part in ("LAYOUT", "DATATYPE", "MEMORY")),
    )


HEADER = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES",
    "MATH FIDELITY", "CORE COUNT", "AVAILABLE WORKER CORE COUNT", CYCLE, GAP, FW, KERNEL,
    *tensor_columns("INPUT_0"), *tensor_columns("INPUT_1"), *tensor_columns("OUTPUT_0"),
    TRACE, REPLAY, "PM IDEAL [ns]", "NOC UTIL (%)",
)  # fmt: skip


def tensor(
    name: str, *cells: str, suffix: str = "_PAD[LOGICAL]", memory: str = "DEV_1_DRAM_INTERLEAVED"
) -> Row:
    """Return the cells of an operand; the last ones unless given: TILE, BFLOAT16, in DRAM."""
    given = (*cells, *("TILE", "BFLOAT16", memory)[len(cells) - 4 :])
    return dict(zip(tensor_columns(name, suffix=suffix), given, strict=True))


def op(code: str = "Matmul", *, kernel: object = 1000, device: object = 0, **cells: object) -> Row:
    """Return the cells of an op; a word in ``cells`` names its column in capitals."""
    row = {
        "OP CODE": code,
        "OP TYPE": "tt_dnn_device",
        "DEVICE ID": str(device),
        KERNEL: str(kernel),
        FW: "1500",
        GAP: "600",
        CYCLE: "100",
    }
    return {**row, **{_column(word): str(cell) for word, cell in cells.items()}}


def _column(word: str) -> str:
    known = {
        "gap": GAP, "fw": FW, "cycle": CYCLE, "trace": TRACE, "replay": REPLAY,
        "ideal": "PM IDEAL [ns]",
    }  # fmt: skip
    return known.get(word, word.upper().replace("_", " "))


def signpost(name: str) -> Row:
    """Return a mark of the program's."""
    return {"OP CODE": name, "OP TYPE": "signpost"}


def fallback(code: str = "(torch) cat") -> Row:
    """Return an op that ran on the host."""
    return {"OP CODE": code, "OP TYPE": "python_fallback", "ATTRIBUTES": "None"}


def text(
    rows: Iterable[Row], *, header: Sequence[str] = HEADER, end: str = "\r\n", quoting: int = 0
) -> str:
    """Return the file; cells whose column the header lacks are left out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(header)
    writer.writerows([row.get(name, "") for name in header] for row in rows)
    return stream.getvalue()


def read(folder: Path, content: str | bytes) -> OpTable:
    """Write a file and read it."""
    file = folder / "ops_perf_results.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_ops_csv(file)
