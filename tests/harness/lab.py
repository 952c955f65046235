"""A machine under test, scripted down to its files, for what looks at machines."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.doctor import Surroundings, checks_of, diagnose, doctor
from pytest_ttnn_perf.core.settings import Settings
from tests.harness.fake_packages import write_package

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_ttnn_perf.cli.doctor import Check
    from pytest_ttnn_perf.report.tables import Result

SNAPSHOT = {
    "host_info": {"Driver": "TT-KMD 2.4.1"},
    "host_sw_vers": {"tt_smi": "3.0.38"},
    "device_info": [
        {
            "board_info": {"board_type": "n150 L"},
            "firmwares": {"fw_bundle_version": "19.2.0"},
            "telemetry": {"aiclk": " 1000"},
            "smbus_telem": {"THROTTLER": "0x0"},
        }
    ],
}
IDLE_HOST = {
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/kernel/iommu_groups/0/type": "identity\n",
    "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "1\n",
}
#: The compiler of kernels, as its package installs it.
COMPILER = {"opt/tenstorrent/sfpi/compiler/bin/riscv-tt-elf-g++": ""}
ONE_CHIP = {
    **IDLE_HOST,
    **COMPILER,
    "dev/tenstorrent/0": "",
    "sys/module/tenstorrent/version": "2.4.1\n",
    "proc/driver/tenstorrent/0/pids": "",
}


@dataclass(slots=True)
class Lab:
    """A machine: its files, its variables, its packages."""

    path: Path
    variables: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def write(self, files: dict[str, str]) -> None:
        """Write files below its root."""
        for name, text in files.items():
            file = self.path / "files" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def add_tt_smi(self, snapshot: object = SNAPSHOT) -> None:
        """Put a tt-smi on its PATH."""
        (self.path / "bin").mkdir()
        program = self.path / "bin" / "tt-smi"
        program.write_text(f"#!/bin/sh\nexec /bin/cat {self.path}/snapshot.json\n")
        program.chmod(0o755)
        (self.path / "snapshot.json").write_text(json.dumps(snapshot))

    @property
    def around(self) -> Surroundings:
        """Where the doctor looks."""
        variables = {"PATH": f"{self.path}/bin", "HOME": f"{self.path}/home", **self.variables}
        return Surroundings(variables, self.path / "locks", self.path / "files")

    @property
    def settings(self) -> Settings:
        """The settings of a project there."""
        return Settings(baselines=self.path / "baselines", artifacts=self.path / ".ttnn_perf")

    def run(self, shape: str) -> Result:
        """Run the command."""
        return doctor(self.settings, self.around, shape=shape, print_line=self.said.append)

    def checks(self, name: str) -> list[Check]:
        """Return what one check finds."""
        found = diagnose(self.settings, self.around, print_line=self.said.append)
        return [check for check in checks_of(found) if check.name == name]


def make_lab(path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return a machine without devices, and with a torch."""
    site = path / "site"
    write_package(site, "torch", "2.7.1")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delitem(sys.modules, "ttnn", raising=False)
    monkeypatch.syspath_prepend(str(site))
    found = Lab(path)
    found.write(IDLE_HOST)
    return found
