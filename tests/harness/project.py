"""A user's project under test: files in, one pytest run after another, whole outputs out."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Loaded once here: runs in this process forget what they imported, and numpy loads only once.
import numpy as np  # noqa: F401

from pytest_ttnn_perf.cli.main import main

if TYPE_CHECKING:
    import pytest


#: Plugins for runs under test, in a folder of their own.
PLUGINS = Path(__file__).parent / "plugins"
#: Hypothesis' plugin imports all of Hypothesis at the end of every run.
QUICK = ("-p", "no:hypothesispytest")
#: Where tests of these projects run. In one process, which is quick; with ``process``, the same
#: expectations hold with workers.
ISOLATE = os.environ.get("TTNN_PERF_TEST_ISOLATE", "inline")


@dataclass(frozen=True, slots=True)
class Ran:
    """How one command ended. ``text`` is what it printed, without what differs between machines."""

    code: int
    text: str
    errors: str = ""


@dataclass(slots=True)
class Project:
    """A folder with tests in it."""

    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        """The project's folder, which is also the current one."""
        return self.pytester.path

    def write(self, **files: str) -> None:
        """Write Python files, named without their suffix."""
        self.pytester.makepyfile(**files)

    def pytest(self, *arguments: str) -> Ran:
        """Run pytest in this process; quick."""
        result = self.pytester.runpytest_inprocess(*_options(arguments), *arguments)
        return Ran(int(result.ret), clean("\n".join(result.outlines)), "\n".join(result.errlines))

    def pytest_process(self, *arguments: str) -> Ran:
        """Run pytest in a process of its own, for what only shows there."""
        return self.run(sys.executable, "-m", "pytest", *_options(arguments), *arguments)

    def cli(self, *arguments: str) -> Ran:
        """Run ``ttnn-perf`` in this process; quick."""
        before = Path.cwd()
        os.chdir(self.path)
        try:
            ran = run_command(*arguments)
        finally:
            os.chdir(before)
        return Ran(ran.code, clean(ran.text), clean(ran.errors))

    def cli_process(self, *arguments: str) -> Ran:
        """Run ``ttnn-perf`` in a process of its own, for what only shows there."""
        return self.run(sys.executable, "-m", "pytest_ttnn_perf.cli.main", *arguments)

    def run(self, *command: str) -> Ran:
        """Run any command in the project's folder."""
        done = subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, timeout=300, check=False
        )
        return Ran(done.returncode, clean(done.stdout), clean(done.stderr))

    def baseline(self, file: str = "test_model.json", key: str | None = None) -> Path:
        """Return the path of a baseline file on this host."""
        folders = [p for p in (self.path / "baselines").iterdir() if p.is_dir()]
        folder = self.path / "baselines" / key if key else folders[0]
        return folder / file

    def stored(self, file: str = "test_model.json") -> dict[str, Any]:
        """Return the tests of a baseline file, decoded; without the ids of runs, as they vary."""
        tests = json.loads(self.baseline(file).read_text())["tests"]
        assert isinstance(tests, dict)
        for metric in (m for test in tests.values() for m in test["metrics"].values()):
            metric["sessions"] = [session[:3] for session in metric["sessions"]]
        return tests

    def records(self) -> list[dict[str, Any]]:
        """Return the run records, oldest first."""
        # Not by their names, which tell runs of the same second in any order.
        files = (self.path / ".ttnn_perf" / "runs").glob("*.json")
        in_order = sorted(files, key=lambda file: file.stat().st_mtime_ns)
        return [json.loads(file.read_text()) for file in in_order]

    def files(self) -> set[str]:
        """Return all files but caches and bytecode."""
        found = (p.relative_to(self.path) for p in self.path.rglob("*") if p.is_file())
        return {str(p) for p in found if not {"__pycache__", ".pytest_cache"} & set(p.parts)}


def run_command(*arguments: str | Path) -> Ran:
    """Run ``ttnn-perf`` in this process and folder; what it does not catch is raised."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            code = main([*map(str, arguments)])
        except SystemExit as end:  # argparse leaves this way
            code = int(end.code or 0)
    for stream in streams:
        stream.seek(0)
    return Ran(code, *(stream.read() for stream in streams))


def _options(arguments: tuple[str, ...]) -> tuple[str, ...]:
    if "no:ttnn_perf" in arguments:
        return QUICK
    return (*QUICK, "--ttnn-perf-isolate", ISOLATE, "--ttnn-perf-confirm", "0")


def clean(text: str) -> str:
    """Take out of an output what differs between machines, versions and moments."""
    text = re.sub(r"^(platform|cachedir|rootdir|configfile|plugins|benchmark: |hypothesis).*\n", "",
                  text, flags=re.MULTILINE)  # fmt: skip
    text = text.replace(", in this process, nothing is measured again", "")
    text = re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "in TIME", text)
    text = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{6}", "RUN-ID", text)
    text = re.sub(r"host-(?!overhead)[a-z0-9_]+", "host-ARCH", text)
    # The last digits of a logarithm are the C library's own.
    text = re.sub(r"\d+\.\d{9,}", lambda found: f"{float(found[0]):.8g}", text)
    # Rules of "=" are as wide as the rest of their line leaves room for.
    text = re.sub(r"={3,}", "===", text)
    text = re.sub(r"_{3,}", "___", text)
    return "\n".join(line.rstrip() for line in text.splitlines())
