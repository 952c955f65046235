"""What ``ttnn-perf doctor`` says about machines of all kinds, each scripted down to its files."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine.chips import take
from tests.harness.fake_packages import write_ttnn
from tests.harness.golden import assert_golden
from tests.harness.lab import ONE_CHIP, SNAPSHOT, make_lab
from tests.harness.project import clean

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.lab import Lab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return make_lab(tmp_path, monkeypatch)


def assert_says(lab: Lab, name: str, *, failed: bool) -> None:
    result = lab.run("table")
    assert_golden(f"doctor_{name}", clean(result.text.replace(str(lab.path), "TMP")))
    assert result.failed is failed


def test_a_host_without_ttnn(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", None)
    assert_says(lab, "no_ttnn_table", failed=False)


def test_a_device_and_a_ttnn_with_tracy(lab: Lab) -> None:
    write_ttnn(lab.path / "site", arch="wormhole_b0", tracy=True)
    lab.write(ONE_CHIP)
    lab.write({"../home/.cache/tt-metal-cache/1/kernels": ""})
    lab.add_tt_smi()
    assert_says(lab, "tracy_table", failed=False)


def test_an_environment_in_which_no_time_means_anything(lab: Lab) -> None:
    write_ttnn(lab.path / "site")
    lab.variables |= {
        "TT_METAL_DEVICE_PROFILER": "1",
        "TT_METAL_DPRINT_CORES": "all",
        "TTNN_CONFIG_OVERRIDES": '{"enable_logging": true}',
    }
    assert_says(lab, "conflicts", failed=True)


def test_a_machine_that_others_use(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ttnn(lab.path / "site", arch="blackhole")
    lab.write(ONE_CHIP)
    lab.write({
        "dev/tenstorrent/1": "",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "tmp/tt-device.dirty": "",
    })  # fmt: skip
    snapshot = json.loads(json.dumps(SNAPSHOT))
    snapshot["device_info"][0]["board_info"]["board_type"] = "p150a"
    snapshot["device_info"][0]["smbus_telem"]["THROTTLER"] = "0x1"
    snapshot["device_info"] *= 2
    lab.add_tt_smi(snapshot)
    monkeypatch.setattr(sys, "argv", ["pytest", "models"])
    with take([0], lab.path / "locks", timeout_s=0, print_line=lambda _: None):
        (lab.path / "locks" / "chip-0.holder").write_text(
            '{"pid": 7, "command": "pytest models", "since": "2026-11-16T12:00:00Z"}'
        )
        assert_says(lab, "occupied", failed=True)
