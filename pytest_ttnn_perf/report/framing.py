"""What stands around a run's results: one line before the tests, a few lines after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.settings import Missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.model.settings import Settings


def heading_line(
    settings: Settings, host: str | None, *, here: Path, inline: bool, profiler: str
) -> str:
    """Say what a run does, and for which key: that of the ``host``, if there are no devices."""
    key = f"key {host}" if host else "keys of the devices that tests open"
    if settings.replay is not None:
        key = "keys of the artifacts"
    parts = [f"gate on, {key}", f"baselines {shown_path(settings.baselines, here)}"]
    if settings.update:
        parts.append(f"update {settings.update.value}")
    if settings.missing is not Missing.FAIL:
        parts.append(f"missing {settings.missing.value}")
    if inline:
        parts.append("in this process, nothing is measured again")
    if settings.replay is None:
        return ", ".join([*parts, profiler])
    replayed = f"replaying {shown_path(settings.replay, here)}, times of this machine are left out"
    return ", ".join([*parts, replayed])


def closing_lines(
    *, missing: Path | None, written: Iterable[Path], records: Iterable[Path], here: Path
) -> Iterator[str]:
    """Say where the results went; ``missing`` is a folder of baselines that is not there."""
    if missing is not None:
        yield f"no baselines folder at {shown_path(missing, here)}"
    for path in written:
        yield f"wrote {shown_path(path, here)}"
    for path in records:
        yield f"run record: {shown_path(path, here)}"


def shown_path(path: Path, here: Path) -> str:
    """Return a path as seen from the folder the user stands in."""
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
