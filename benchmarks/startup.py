"""What the plugin costs beside the tests: instructions of whole pytest runs, counted.

Bars: an idle run takes at most 1.02 × those of pytest without us; a gated run of three tests, in
two processes, at most 3.5 ×. Instructions, not seconds: they repeat, whatever else runs.
Needs valgrind, and the package installed. Counted as users have it, found by its entry point; the
idle run then also named by ``-p``, beside an empty plugin: for ``-p`` pytest reads the metadata of
all that is installed, whatever the plugin does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

IDLE_BAR, GATED_BAR = 1.02, 3.5
PLAIN = """
import time

def test_a(): wait()
def test_b(): wait()
def test_c(): wait()

def wait():
    for _ in range(14):
        time.sleep(0.02)
"""
GATED = """
import time

def test_a(ttnn_perf): ttnn_perf.measure(time.sleep, 0.02)
def test_b(ttnn_perf): ttnn_perf.measure(time.sleep, 0.02)
def test_c(ttnn_perf): ttnn_perf.measure(time.sleep, 0.02)
"""


def main() -> int:
    if shutil.which("valgrind") is None:
        print("startup: NOT MEASURED: valgrind is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_plain.py").write_text(PLAIN)
        (folder / "test_gated.py").write_text(GATED)
        (folder / "empty_plugin.py").write_text("")
        plain = "test_plain.py"
        # Other plugins would count as well: those installed are blocked, or none is looked for.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = ""
        others = [name for name in entry_points(group="pytest11").names if name != "ttnn_perf"]
        blocked = [f"-pno:{name}" for name in others]
        without = [*blocked, "-pno:ttnn_perf", plain]
        # Calls that only wait take as long under valgrind: the tests pass against a baseline.
        run_pytest(folder, [], [*blocked, "--ttnn-perf-update=new", "test_gated.py"])
        gate = ["--ttnn-perf", "--ttnn-perf-confirm=0"]
        idle = _ratio(folder, "idle", without, [*blocked, plain], IDLE_BAR)
        gated = _ratio(folder, "gated", without, [*blocked, *gate, "test_gated.py"], GATED_BAR)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        _ratio(folder, "idle, named by -p", [plain], ["-p", "pytest_ttnn_perf.plugin", plain])
        _ratio(folder, "an empty plugin, named by -p", [plain], ["-p", "empty_plugin", plain])
    return 0 if idle <= IDLE_BAR and gated <= GATED_BAR else 1


def _ratio(
    folder: Path, what: str, without: list[str], with_us: list[str], bar: float | None = None
) -> float:
    """Count a run without and with us, and print the ratio."""
    for arguments in (without, with_us):  # once uncounted, to write the bytecode
        run_pytest(folder, [], arguments)
    plain, ours = instructions(folder, without), instructions(folder, with_us)
    ratio = ours / plain
    print(f"{what}: {ours / 1e6:.1f} M instructions, plain pytest {plain / 1e6:.1f} M")
    print(f"{what}: ratio {ratio:.4f}" + (f" (bar: {bar})" if bar else ""))
    return ratio


def instructions(folder: Path, arguments: list[str]) -> int:
    """Return the instructions of a run, those of its worker processes included."""
    logs = Path(tempfile.mkdtemp(dir=folder))
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    run_pytest(folder, [*tool, "--trace-children=yes", f"--log-file={logs}/%p"], arguments)
    counted = [re.search(r"Collected : (\d+)", log.read_text()) for log in logs.iterdir()]
    return sum(int(found[1]) for found in counted if found)


def run_pytest(folder: Path, tool: list[str], arguments: list[str]) -> None:
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTHONHASHSEED": "0",
        # Bytecode as on any second run, and of this benchmark's own.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    command = [*tool, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, check=True
    )


if __name__ == "__main__":
    sys.exit(main())
