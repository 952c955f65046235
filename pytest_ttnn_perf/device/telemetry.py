"""What the driver tells of the chips: files of a few bytes, read in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_ttnn_perf.model.hardware import Scalar

_CHIPS: Final = "class/tenstorrent/tenstorrent!*"
_DRIVER: Final = "module/tenstorrent/version"


def telemetry(system: Path = Path("/sys")) -> Mapping[str, Scalar]:
    """Return the state of the chips: the slowest clock, the largest power and temperature.

    What the driver does not tell is left out.
    """
    chips = sorted(system.glob(_CHIPS))
    found: dict[str, Scalar] = {
        "clock_mhz": _worst(min, _numbers(chips, "tt_aiclk")),
        "power_w": _worst(max, _numbers(chips, "device/hwmon/hwmon*/power1_input", per=1e6)),
        "temperature_c": _worst(max, _numbers(chips, "device/hwmon/hwmon*/temp1_input", per=1e3)),
        "thermal_trips": _worst(max, _numbers(chips, "tt_therm_trip_count")),
        "firmware": ", ".join(sorted(set(_texts(chips, "tt_fw_bundle_ver")))) or None,
        "driver": next(iter(_texts([system], _DRIVER)), None),
    }
    return {name: value for name, value in found.items() if value is not None}


def _worst(choose: Callable[[list[float]], float], values: Iterable[float]) -> float | None:
    known = list(values)
    return choose(known) if known else None


def _numbers(folders: Iterable[Path], name: str, *, per: float = 1.0) -> Iterator[float]:
    for text in _texts(folders, name):
        if text.isdecimal():
            yield int(text) / per


def _texts(folders: Iterable[Path], name: str) -> Iterator[str]:
    for folder in folders:
        for file in sorted(folder.glob(name)):
            try:
                text = file.read_text(encoding="utf-8").strip()
            except (OSError, ValueError):
                continue
            if text:
                yield text
