"""What the doctor makes of what it finds; whole outputs are in tests/golden."""

from __future__ import annotations

import fcntl
import socket
import tempfile
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.cli.doctor import Check, checks_of, diagnose
from pytest_ttnn_perf.core.settings import BrokerUse
from pytest_ttnn_perf.machine.chips import take
from tests.harness.fake_packages import write_ttnn
from tests.harness.lab import COMPILER, ONE_CHIP, make_lab

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.lab import Lab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return make_lab(tmp_path, monkeypatch)


@pytest.fixture
def chip(lab: Lab) -> Lab:
    write_ttnn(lab.path / "site", arch="wormhole_b0")
    lab.write(ONE_CHIP)
    return lab


def found(lab: Lab, name: str) -> tuple[bool | None, str, str | None, bool]:
    (check,) = lab.checks(name)
    said = check.found.replace(str(lab.path), "TMP")
    return check.ok, said, check.remedy, check.blocks


def test_without_the_kernel_compiler_no_device_opens(chip: Lab) -> None:
    for name in COMPILER:
        (chip.path / "files" / name).unlink()
    ok, said, remedy, blocks = found(chip, "compiler")

    places = "TMP/site/ttnn/runtime/sfpi or TMP/files/opt/tenstorrent/sfpi"
    assert said == f"no sfpi in {places}: no device opens without it"
    assert (ok, blocks) == (False, True)
    assert remedy == "install the package of https://github.com/tenstorrent/sfpi/releases"
    assert chip.run("table").failed


@pytest.mark.parametrize(
    ("says", "ok", "found_version"),
    [("7.89.0[1050]", True, "7.89.0"), ("7.77.0[930]", False, "7.77.0"), ("", None, "unknown")],
)
def test_the_compiler_is_of_the_version_that_ttnn_states(
    chip: Lab, says: str, ok: bool | None, found_version: str
) -> None:
    (compiler,) = (chip.path / "files" / name for name in COMPILER)
    compiler.write_text(f"#!/bin/sh\necho 'riscv-tt-elf-g++ (tenstorrent/sfpi:{says}) 15.1.0'\n")
    compiler.chmod(0o755)
    stated = chip.path / "site" / "ttnn" / "tt_metal" / "sfpi-version"
    stated.parent.mkdir()
    stated.write_text("# sfpi release\nsfpi_version='7.89.0'\nsfpi_build='1050'\n")

    checked = found(chip, "compiler")

    assert checked[0] is ok
    assert found_version in checked[1]
    if not ok:
        install = "install https://github.com/tenstorrent/sfpi/releases/tag/7.89.0"
        assert checked[2:] == (install, False)


def test_the_system_is_not_asked_for_while_another_process_uses_a_chip(chip: Lab) -> None:
    chip.write({"proc/driver/tenstorrent/0/pids": "12\n"})
    ok, said, remedy, _ = found(chip, "key")
    assert (ok, remedy) == (None, "pip install tt-smi")
    assert said == "unknown: only ttnn knows, but another process is using the chips"


def test_the_system_is_not_asked_for_while_another_run_holds_a_chip(chip: Lab) -> None:
    with take([0], chip.path / "locks", timeout_s=0, print_line=lambda _: None):
        assert found(chip, "key")[0] is None
        ok, said, remedy, blocks = found(chip, "locks")
    assert (ok, remedy, blocks) == (False, "let it end", True)
    assert said.startswith("chip 0: held by pid ")


def test_the_lock_of_another_runner_counts_and_its_marker_is_then_no_sign(chip: Lab) -> None:
    chip.write({"tmp/tt-device.lock": "", "tmp/tt-device.dirty": ""})
    with (chip.path / "files/tmp/tt-device.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held, free = chip.checks("locks")
        assert [check.ok for check in chip.checks("devices")] == [True]
    assert (held.ok, held.blocks, free.ok) == (False, True, True)
    assert held.found == (
        f"{chip.path}/files/tmp/tt-device.lock, of run_safe_pytest.sh, is held by a process that "
        "cannot be inspected, such as one of another user or container"
    )


@pytest.mark.parametrize("ignored", [False, True])
def test_a_device_broker_is_named_with_its_queue(chip: Lab, *, ignored: bool) -> None:
    use = BrokerUse.IGNORE if ignored else BrokerUse.QUEUE
    with tempfile.TemporaryDirectory(prefix="ttp") as folder:
        chip.variables["TT_DEVICE_MCP_SOCKET"] = f"{folder}/s"
        assert chip.checks("broker") == []
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{folder}/s")
            server.listen()
            settings = replace(chip.settings, broker=use)
            found = diagnose(settings, chip.around, print_line=chip.said.append)
        told = f"tt-device-mcp is up ({folder}/s)"
    (check,) = [each for each in checks_of(found) if each.name == "broker"]
    remedy = "run tests through its queue: tt-device-mcp run 'pytest --ttnn-perf'"
    assert check == Check("broker", ok=False, found=told, remedy=remedy, blocks=not ignored)
    (untested,) = [each for each in checks_of(found) if each.name == "untested"]
    assert untested.found == "a device broker: supported, and not tried on hardware yet"
    (key,) = [each for each in checks_of(found) if each.name == "key"]
    assert key.ok is None, "to ask ttnn is to take the chips"
