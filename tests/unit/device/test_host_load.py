"""How busy the host is: what its files tell, and nothing that they do not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device.host import ROOT, host_load

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, *, load: str | None = None, governor: str | None = None) -> dict[str, str]:
    """Write the files of a host; return the environment that names them."""
    for name, text in (
        ("proc/loadavg", load),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor),
    ):
        if text is not None:
            file = root / name
            file.parent.mkdir(parents=True)
            file.write_text(text)
    return {ROOT: str(root)}


def test_load_threads_processors_and_governor(tmp_path: Path) -> None:
    around = write(tmp_path, load="12.50 3.10 1.05 9/1234 4242\n", governor="powersave\n")
    assert host_load(around) == {
        "load_1m": 12.5,
        "runnable_threads": 8,  # the one that asks is none of them
        "cpu_count": os.cpu_count(),
        "governor": "powersave",
    }


@pytest.mark.parametrize("load", [None, "", "12.50", "12.50 3.10 1.05 many/1234 4242", "a b c 1/2"])
def test_what_is_not_told_is_left_out(tmp_path: Path, load: str | None) -> None:
    assert host_load(write(tmp_path, load=load)) == {"cpu_count": os.cpu_count()}


@pytest.mark.parametrize("environment", [{}, {ROOT: ""}])
def test_without_a_folder_this_machine_is_asked(environment: dict[str, str]) -> None:
    if not os.path.exists("/proc/loadavg"):  # noqa: PTH110 (the file itself is the point)
        pytest.skip("this system has no /proc/loadavg")
    told = host_load(environment)
    assert isinstance(told["load_1m"], float)
    assert isinstance(told["runnable_threads"], int)
