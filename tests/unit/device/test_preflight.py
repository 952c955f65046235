"""What the installed ttnn can do is found out in another process, whatever happens in that one."""

from __future__ import annotations

import json
import os
import sys
import types
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine import build as module
from pytest_ttnn_perf.machine.build import preflight
from pytest_ttnn_perf.machine.ttnn import Build
from tests.harness.fake_packages import write_package, write_ttnn

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = (sys.executable,)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose packages are found first."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.delitem(sys.modules, "ttnn", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def build_of(
    cache: Path | None = None,
    *,
    timeout_s: float = 60.0,
    devices: Path | None = None,
    **variables: str,
) -> Build:
    environment = {"PATH": os.environ["PATH"], **variables}
    options = {} if devices is None else {"devices": devices}
    return preflight(PYTHON, environment, cache, timeout_s=timeout_s, **options)


def test_without_ttnn_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", None)
    assert preflight(("/does/not/exist",), {}, None) == Build(None)


def test_a_public_wheel_without_hardware(site: Path) -> None:
    location = write_ttnn(site)
    assert build_of() == Build("0.81.1", str(location), tracy=False)
    assert "ttnn" not in sys.modules


def test_a_build_with_tracy_on_hardware(site: Path) -> None:
    location = write_ttnn(site, arch="wormhole_b0", tracy=True)
    assert build_of() == Build("0.81.1", str(location), tracy=True, arch="wormhole_b0")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import torch_that_is_broken", "ModuleNotFoundError: No module named 'torch_that_is_brok"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("import os; os.close(1); os._exit(0)", "ended with exit code 0"),
        (
            "import os; os.write(2, b'critical | TT_THROW @ c.cpp:76: e\\ninfo:\\nUnknown key: no"
            "pe\\nbacktrace:\\n --- f\\n'); os._exit(1)",
            "ended with exit code 1: Unknown key: nope",
        ),
    ],
)
def test_a_broken_ttnn_is_a_problem_in_one_line(site: Path, source: str, problem: str) -> None:
    write_package(site, "ttnn", "1.0", source)
    build = build_of()
    assert (build.version, build.tracy, build.arch) == ("1.0", None, None)
    assert build.problem is not None
    assert build.problem.startswith(problem)
    assert "\n" not in build.problem


def test_what_was_answered_before_a_crash_counts(site: Path) -> None:
    source = """
import os
def get_arch_name():
    if "TT_METAL_DEVICE_PROFILER" not in os.environ:
        os.abort()
    return "blackhole"
"""
    write_package(site, "ttnn", "1.0", source)
    build = build_of()
    assert (build.tracy, build.arch, build.problem) == (True, None, "was killed by SIGABRT")


def test_one_that_hangs_is_not_waited_for(site: Path) -> None:
    write_package(site, "ttnn", "1.0", "import time; time.sleep(60)")
    assert build_of(timeout_s=0.3).problem == "did not answer within 0.3 s"


@pytest.mark.parametrize(
    ("interpreter", "problem"),
    [
        (("/bin/echo", "hello"), "answered what cannot be read: 'hello -c import importlib"),
        (("/does/not/exist",), "/does/not/exist cannot be started: No such file or directory"),
    ],
)
def test_an_interpreter_that_is_none(
    site: Path, interpreter: tuple[str, ...], problem: str
) -> None:
    write_ttnn(site)
    found = preflight(interpreter, {}, None).problem
    assert found is not None
    assert found.startswith(problem)


def test_what_lies_in_the_current_folder_is_not_taken_for_ttnn(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ttnn(site)
    (tmp_path / "ttnn.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    assert build_of().problem is None


def test_a_simulator_that_stands_in_for_ttnn_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", types.ModuleType("ttl.sim.ttnnsim"))
    assert build_of() == Build(None)


def test_a_build_is_asked_once(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ttnn(site)
    cache, none = tmp_path / "cache", tmp_path / "no devices"
    first = build_of(cache, devices=none)
    assert json.loads((cache / "ttnn-build.json").read_text())["tracy"] is False

    monkeypatch.setattr(module, "ask_ttnn", None)  # would raise
    assert build_of(cache, devices=none) == first


def test_the_architecture_is_asked_every_time(site: Path, tmp_path: Path) -> None:
    ttnn = write_ttnn(site)
    assert build_of(tmp_path, devices=tmp_path).arch is None
    source = (ttnn / "__init__.py").read_text().replace('"invalid"', "os.environ['ARCH']")
    (ttnn / "__init__.py").write_text(source)
    assert build_of(tmp_path, devices=tmp_path, ARCH="a").arch == "a"
    again = build_of(tmp_path, TT_METAL_MOCK_CLUSTER_DESC_PATH="mock.yaml", ARCH="b")
    assert (again.arch, again.tracy) == ("b", False)


def test_a_new_build_is_asked_again(site: Path, tmp_path: Path) -> None:
    write_ttnn(site)
    assert build_of(tmp_path, devices=tmp_path / "none").tracy is False
    ttnn = write_ttnn(site, tracy=True)
    assert build_of(tmp_path, devices=tmp_path / "none").tracy is True
    (ttnn / "_ttnn.so").write_bytes(b"built anew")
    (ttnn / "__init__.py").touch()
    assert build_of(tmp_path, devices=tmp_path / "none").tracy is True


@pytest.mark.parametrize("damage", ["{", '{"build": "x", "tracy": 1}'])
def test_a_damaged_cache_is_written_anew(site: Path, tmp_path: Path, damage: str) -> None:
    write_ttnn(site, tracy=True)
    (tmp_path / "ttnn-build.json").write_text(damage)
    assert build_of(tmp_path).tracy is True
    assert json.loads((tmp_path / "ttnn-build.json").read_text())["tracy"] is True
