"""Reports that a profiler has left in its usual place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def ops_reports_since(since_s: float, environment: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return the ops CSVs written since a moment, oldest first."""
    home = environment.get("TT_METAL_PROFILER_DIR")
    if not home:
        home = str(Path(environment.get("TT_METAL_HOME") or cwd) / "generated" / "profiler")
    found = [
        (file.stat().st_mtime, file)
        for file in Path(home).rglob("ops_perf_results*.csv")
        if file.is_file()
    ]
    return [file for written_s, file in sorted(found) if written_s >= since_s]
