"""The examples are run as a user's own tests are: on the host as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pytest_ttnn_perf.device.host import ROOT

REPOSITORY = Path(__file__).parents[2]
#: A plugin that writes down what the process of the examples has that is ours.
PROBE = """
import json, os, pathlib, sys

def pytest_sessionfinish():
    ours = sorted(name for name in sys.modules if name.split(".")[0] == "tests")
    told = {"host": os.environ.get("TTNN_PERF_HOST"), "modules": ours}
    pathlib.Path(os.environ["PROBE"]).write_text(json.dumps(told))
"""


def test_examples_see_the_host_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBE)
    environment = {name: value for name, value in os.environ.items() if name != ROOT}
    environment |= {"PYTHONPATH": str(tmp_path), "PROBE": str(tmp_path / "told.json")}
    command = [
        *(sys.executable, "-m", "pytest", "examples/test_mlp.py", "-q", "-p", "probe"),
        *("-p", "no:cacheprovider", "--ttnn-perf", "--ttnn-perf-isolate", "inline"),
        *("--ttnn-perf-missing", "ignore", "--ttnn-perf-artifacts", str(tmp_path / "artifacts")),
    ]

    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "told.json").read_text()) == {"host": None, "modules": []}
