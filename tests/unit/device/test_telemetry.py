"""What the driver tells of the chips."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.device.host import telemetry

if TYPE_CHECKING:
    from pathlib import Path


def write(system: Path, chip: int, **files: str) -> None:
    """Write the files of a chip; those of its sensors are named with ``hwmon_``."""
    for name, text in files.items():
        sensor = name.removeprefix("hwmon_")
        place = f"device/hwmon/hwmon{chip}/{sensor}" if sensor != name else name
        file = system / "class" / "tenstorrent" / f"tenstorrent!{chip}" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_of_several_chips_the_worst_is_told(tmp_path: Path) -> None:
    for chip, clock, watts, degrees in ((0, 1000, 31.5, 44.0), (1, 800, 60.0, 40.5)):
        write(
            tmp_path, chip, tt_aiclk=f"{clock}\n", hwmon_power1_input=f"{watts * 1e6:.0f}\n",
            hwmon_temp1_input=f"{degrees * 1e3:.0f}\n", tt_therm_trip_count=f"{chip}\n",
            tt_fw_bundle_ver="19.2.0\n",
        )  # fmt: skip
    (tmp_path / "module" / "tenstorrent").mkdir(parents=True)
    (tmp_path / "module" / "tenstorrent" / "version").write_text("2.4.1\n")
    assert telemetry(tmp_path) == {
        "clock_mhz": 800.0,
        "power_w": 60.0,
        "temperature_c": 44.0,
        "thermal_trips": 1.0,
        "firmware": "19.2.0",
        "driver": "2.4.1",
    }


def test_different_firmwares_are_all_told(tmp_path: Path) -> None:
    write(tmp_path, 0, tt_fw_bundle_ver="19.2.0")
    write(tmp_path, 1, tt_fw_bundle_ver="18.1.0")
    assert telemetry(tmp_path) == {"firmware": "18.1.0, 19.2.0"}


def test_what_is_no_number_or_not_there_is_left_out(tmp_path: Path) -> None:
    assert telemetry(tmp_path) == {}
    write(tmp_path, 0, tt_aiclk="N/A\n", hwmon_power1_input="\n")
    assert telemetry(tmp_path) == {}
