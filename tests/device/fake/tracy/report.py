"""``ops_perf_results_<time>.csv``: what the host called, joined with what the device measured."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COPIED = (
    "DEVICE ARCH", "CORE COUNT", "AVAILABLE WORKER CORE COUNT", "DEVICE FW START CYCLE",
    "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]", "DEVICE FW DURATION [ns]",
    "DEVICE KERNEL DURATION [ns]", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID",
)  # fmt: skip
_OPERAND = tuple(
    f"INPUT_0_{part}"
    for part in (
        "W_PAD[LOGICAL]", "Z_PAD[LOGICAL]", "Y_PAD[LOGICAL]", "X_PAD[LOGICAL]", "LAYOUT",
        "DATATYPE", "MEMORY",
    )
)  # fmt: skip
_HEADER = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES",
    "MATH FIDELITY", "CORE COUNT", "AVAILABLE WORKER CORE COUNT", "HOST START TS",
    "HOST DURATION [ns]", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]",
    "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]", *_OPERAND, "METAL TRACE ID",
    "METAL TRACE REPLAY SESSION ID", "PROGRAM HASH", "PROGRAM CACHE HIT", "PM IDEAL [ns]",
)  # fmt: skip

_Measured = dict[tuple[str, str], list[dict[str, str]]]


def write_report(folder: Path) -> None:
    """Write the table; AssertionError where the device lost an op that the host knows of."""
    logs = folder / ".logs"
    events = _lines(logs / "tracy_events.jsonl")
    if not events:
        return
    rows = list(_rows(events, _measured(logs / "cpp_device_perf_report.csv")))
    now = datetime.now(timezone.utc).strftime("%Y_%m_%d_%H_%M_%S")
    file = folder / "reports" / now / f"ops_perf_results_{now}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, _HEADER, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _measured(file: Path) -> _Measured:
    found: _Measured = defaultdict(list)
    if file.exists():
        with file.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                found[row["GLOBAL CALL COUNT"], row["METAL TRACE REPLAY SESSION ID"]].append(row)
    return found


def _rows(events: list[dict[str, Any]], measured: _Measured) -> Iterator[dict[str, str]]:
    captured: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["kind"] == "signpost":
            start = str(event["at"])
            yield {"OP CODE": event["name"], "OP TYPE": "signpost", "HOST START TS": start}
        elif event["kind"] == "replay":
            for op in captured[event["trace"]]:
                for row in measured[str(op["id"]), str(event["replay"])]:
                    yield _host(op) | {name: row[name] for name in _COPIED}
        elif event["captured"] is not None:
            captured[event["captured"]].append(event)
            yield _host(event)
        else:
            found = measured[str(event["id"]), ""]
            assert found, (
                f"Device data missing: Op {event['id']} not present in cpp_device_perf_report.csv "
                f"for device {event['chip']}"
            )
            yield _host(event) | {name: found[0][name] for name in _COPIED}


def _host(op: dict[str, Any]) -> dict[str, str]:
    return {
        "OP CODE": op["code"],
        "OP TYPE": "tt_dnn_device",
        "GLOBAL CALL COUNT": str(op["id"]),
        "DEVICE ID": str(op["chip"]),
        "ATTRIBUTES": "{}",
        "MATH FIDELITY": op["fidelity"] if op["captured"] is None else "",
        "HOST START TS": str(op["at"]),
        "HOST DURATION [ns]": "25990",
        "PROGRAM HASH": str(sum(op["code"].encode())),
        "PROGRAM CACHE HIT": "False",
        "PM IDEAL [ns]": "1",
        **{name: op[name] for name in _OPERAND},
    }
