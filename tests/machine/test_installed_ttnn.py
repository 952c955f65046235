"""What the installed ttnn can do is found out in another process, whatever happens in that one."""

from __future__ import annotations

import os
import sys
import types
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine.inspection import Build, preflight
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


def build_of(*, timeout_s: float = 60.0, **variables: str) -> Build:
    return preflight(PYTHON, {"PATH": os.environ["PATH"], **variables}, timeout_s=timeout_s)


def test_without_ttnn_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ttnn", None)
    assert preflight(("/does/not/exist",), {}) == Build(None)


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


def test_one_that_hangs_is_not_waited_for(site: Path) -> None:
    write_package(site, "ttnn", "1.0", "import time; time.sleep(60)")
    assert build_of(timeout_s=0.3).problem == "did not answer within 0.3 s"


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
