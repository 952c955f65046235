"""What the plugin costs when it is not used: instructions of an idle pytest run, counted.

Bar: at most 1.02 × pytest without us. Instructions, not seconds: they repeat whatever else the
machine does. Needs valgrind, and the package installed. Counted as users have it, found by its
entry point; then named by ``-p``, beside an empty plugin: for ``-p`` pytest reads the metadata of
all that is installed, whatever the plugin does. The bar is for the first.
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

BAR = 1.02


def main() -> int:
    if shutil.which("valgrind") is None:
        print("startup: NOT MEASURED: valgrind is not installed", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_plain.py").write_text("def test_plain(): pass\n")
        (folder / "empty_plugin.py").write_text("")
        # Other plugins would count as well: those installed are blocked, or none is looked for.
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = ""
        others = [name for name in entry_points(group="pytest11").names if name != "ttnn_perf"]
        blocked = [f"-pno:{name}" for name in others]
        installed = _ratio(folder, "installed", [*blocked, "-pno:ttnn_perf"], blocked)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        _ratio(folder, "named by -p", [], ["-p", "pytest_ttnn_perf.plugin"])
        _ratio(folder, "an empty plugin, by -p", [], ["-p", "empty_plugin"])
    return 0 if installed <= BAR else 1


def _ratio(folder: Path, way: str, without: list[str], with_us: list[str]) -> float:
    """Count a run without and with us, and print the ratio."""
    for arguments in (without, with_us):  # once uncounted, to write the bytecode
        _pytest(folder, [], arguments)
    plain, ours = _instructions(folder, without), _instructions(folder, with_us)
    ratio = ours / plain
    print(f"{way}: {ours / 1e6:.1f} M instructions, plain pytest {plain / 1e6:.1f} M")
    print(f"{way}: ratio {ratio:.4f}" + (f" (bar: {BAR})" if way == "installed" else ""))
    return ratio


def _instructions(folder: Path, arguments: list[str]) -> int:
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = _pytest(folder, tool, arguments)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if collected is None:
        message = f"valgrind did not count: {done.stderr[-500:]}"
        raise SystemExit(message)
    return int(collected[1])


def _pytest(
    folder: Path, tool: list[str], arguments: list[str]
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTHONHASHSEED": "0",
        # Bytecode as on any second run, and of this benchmark's own.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    command = [*tool, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
