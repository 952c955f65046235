"""Small captures, as a profiler would write them."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Real captures of every version: of one device and several, with traces and without.
VARIETY = tuple(f"ops_perf/{name}.csv" for name in (
    "distilbert_2024_v1", "oft_2025_09_v2", "tiny_slice_fallback", "tiny_transpose_quasar",
    "blackhole_deepseek_8dev", "gemma_sliding_decode_final", "llama_8b_final_decode", "rt_detr",
))  # fmt: skip
COLUMNS = (
    "OP CODE", "OP TYPE", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "DEVICE FW START CYCLE", "OP TO OP LATENCY [ns]",
    "DEVICE KERNEL DURATION [ns]",
    *(f"INPUT_0_{part}" for part in (
        "W_PAD[LOGICAL]", "Z_PAD[LOGICAL]", "Y_PAD[LOGICAL]", "X_PAD[LOGICAL]",
        "LAYOUT", "DATATYPE", "MEMORY")),
    "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID", "PROGRAM HASH",
)  # fmt: skip


def op(
    code: str, ns: float | str, cells: Mapping[str, str] | None = None, *, cores: int = 64
) -> dict[str, str]:
    """Return a row of a capture; ``cells`` are other than usual."""
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "OP CODE": code, "OP TYPE": "tt_dnn_device", "DEVICE ID": "0",
        "DEVICE ARCH": "wormhole_b0", "MATH FIDELITY": "HiFi2", "CORE COUNT": str(cores),
        "AVAILABLE WORKER CORE COUNT": "64", "DEVICE KERNEL DURATION [ns]": str(ns),
        "OP TO OP LATENCY [ns]": "500", "INPUT_0_W_PAD[LOGICAL]": "1[1]",
        "INPUT_0_Z_PAD[LOGICAL]": "1[1]", "INPUT_0_Y_PAD[LOGICAL]": "1024[1000]",
        "INPUT_0_X_PAD[LOGICAL]": "512[512]", "INPUT_0_LAYOUT": "TILE",
        "INPUT_0_DATATYPE": "BFLOAT16", "INPUT_0_MEMORY": "DEV_0_L1_HEIGHT_SHARDED",
        "PROGRAM HASH": "7",
    }  # fmt: skip
    return {**row, **(cells or {})}


def signpost(name: str) -> dict[str, str]:
    """Return a mark between rows."""
    return {**dict.fromkeys(COLUMNS, ""), "OP CODE": name, "OP TYPE": "signpost"}


def capture(*rows: dict[str, str]) -> str:
    """Return a capture."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
