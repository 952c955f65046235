"""Tests that start a profiled process of their own, beside tests that open a device."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, MODELS, Rig, play
from tests.device.script import Op
from tests.existing.helpers import FILES

if TYPE_CHECKING:
    from tests.harness.project import Ran

OPS = (Op("matmul", 6e6), Op("relu", 5e5), Op("add", 2e6))
#: A child that runs a test of the project under Tracy, by a helper and by itself.
CHILDREN = """
    import subprocess
    import sys

    import pytest
    from models.perf.device_perf_utils import run_device_perf

    COMMAND = "pytest -p no:ttnn_perf test_target.py"

    @pytest.mark.ttnn_perf
    def test_seen():
        run_device_perf(COMMAND, "seen", 1, ["DEVICE KERNEL"], 1)

    @pytest.mark.ttnn_perf
    def test_bare():
        line = f"python3 -m tracy -p -r -o generated/profiler/bare -m '{COMMAND}'"
        try:
            subprocess.run([line], shell=True, check=True)
        except Exception:
            pytest.fail("caught what is not an error of the test")
"""
TARGET = """
    import numpy as np
    import ttnn

    def test_target(device):
        ones = np.ones((32, 32), np.float32)
        x = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)
        ttnn.matmul(x, x)
"""
NAMES = ("test_seen", "test_bare")
FIRST = "test_children.py"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Return a project in which a device is opened before children are started."""
    rig = Rig(tmp_path).write(
        conftest=CONFTEST,
        test_a_models=MODELS,
        test_children=CHILDREN,
        test_target=TARGET,
    )
    for name, text in FILES.items():
        if not name.startswith("tracy"):
            file = rig.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    rig.machine.play(play(ops=OPS))
    return rig


def run(rig: Rig, *arguments: str) -> Ran:
    own = str(Path(sys.executable).parent)
    return rig.pytest(None, *arguments, PATH=f"{own}:{os.environ['PATH']}")


def metrics(rig: Rig, name: str) -> dict[str, Any]:
    found: dict[str, Any] = rig.metrics(f"{FIRST}::{name}")
    return found


def test_each_is_gated_in_a_worker_of_its_own(rig: Rig) -> None:
    ran = run(
        rig, "test_a_models.py", FIRST, "--ttnn-perf-update=new", "--ttnn-perf-confirm=0", "-v",
        "-k", "dense or seen or bare",
    )  # fmt: skip

    assert counts_of(ran) == "3 passed, 1 deselected", ran.text + ran.errors
    for name in NAMES:
        assert metrics(rig, name)["device_kernel_time"]["samples"] == [6e6], name
        assert rig.record()["tests"][f"{FIRST}::{name}"]["profiles_itself"] is True
        # Told once, whatever it took to run it.
        assert ran.text.count(f"{FIRST}::{name} PASSED") == 1
    assert not list((rig.project / ".ttnn_perf").glob("passes/*"))
    # The device pass told of the models: nobody has deleted its folder.
    assert rig.metrics("test_a_models.py::test_dense")["device_kernel_time"]["samples"] == [
        6.5e6, 6.5e6, 6.5e6,
    ]  # fmt: skip
