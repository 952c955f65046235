"""Makes the environments in which ``tests/ttnn`` runs, and runs it there: ``install``, ``test``.

There is one for each Python that TTNN has wheels for. A Python that this machine does not have is
named; only if it has none of them does this fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.pythons import python_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".ttnn"
#: Everything on the first; on the others whole runs of the gate, which is where Pythons differ.
VERSIONS = {"3.12": "tests/ttnn", "3.10": "tests/ttnn/test_session.py"}


def main() -> int:
    """Do what the first argument says, for every version; return 1 when one fails."""
    steps = {"install": _install, "test": _test}
    if len(sys.argv) != 2 or sys.argv[1] not in steps:
        _say(__doc__ or "")
        return 2
    return steps[sys.argv[1]]()


def _install() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    found = {version: python_of(version) for version in VERSIONS}
    for version, interpreter in found.items():
        if interpreter is None:
            _say(f"WARNING: no Python {version} here: NOTHING IS TESTED WITH TTNN ON {version}")
        else:
            _make(FOLDER / version, interpreter)
    return 0 if any(found.values()) else 1


def _make(folder: Path, interpreter: str) -> None:
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
    groups = ["--group", "test", "--group", "ttnn"]
    subprocess.run([*pip, "--editable", ".", *groups], cwd=ROOT, check=True)


def _test() -> int:
    code = 0
    for version, tests in VERSIONS.items():
        python = FOLDER / version / "bin" / "python"
        if not python.exists():
            _say(f"WARNING: no Python {version} here: NOTHING IS TESTED WITH TTNN ON {version}")
            continue
        code |= _resolve(version, str(python))
        _say(f"--- {tests} on Python {version}")
        subprocess.run([python, Path(__file__).with_name("placeholder.py")], check=True)
        command = [str(python), "-m", "pytest", "-n", "auto", tests]
        environment = {**os.environ, "TTNN_PERF_TEST_REAL": "required"}
        code |= subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return 1 if code else 0


def _resolve(version: str, python: str) -> int:
    """Let the installer find out whether every extra, and all of them, can be beside TTNN."""
    ask = "from importlib.metadata import metadata as of; print(*of('pytest-ttnn-perf').get_all("
    listed = subprocess.run(
        [python, "-c", f"{ask}'Provides-Extra')or())"], capture_output=True, text=True, check=True
    )
    extras = listed.stdout.split()
    pip = [python, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
    code = 0
    for wanted in (*extras, ",".join(extras)):
        _say(f"--- .[{wanted}] beside ttnn on Python {version}")
        done = subprocess.run([*pip, f".[{wanted}]", "--group", "ttnn"], cwd=ROOT, check=False)
        code |= done.returncode
    return code


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
