"""A user's project in git, in two versions, on a machine whose speed is scripted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from textwrap import dedent
from typing import TYPE_CHECKING

from tests.harness.git import git_in
from tests.harness.project import Ran, clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    #: What a test records, in ms or by its arguments; or a statement that it executes instead.
    Numbers = Mapping[str, object] | str

#: ``number`` counts the processes of all runs; each finds the machine a little slower.
TESTS = """
    import os, signal, time
    from pathlib import Path

    import pytest
    from model import TESTS

    MACHINE = Path(os.environ["MACHINE"])
    number = len((MACHINE / "processes").read_text().splitlines())
    with (MACHINE / "processes").open("a") as file:
        file.write(f"{os.getpid()} {Path(__file__).parent}\\n")
    speed = (1 + float(os.environ["DRIFT"])) ** number

    @pytest.mark.ttnn_perf
    @pytest.mark.parametrize("name", list(TESTS))
    def test_model(ttnn_perf, name):
        if isinstance(TESTS[name], str):
            exec(TESTS[name])
            return
        for metric, told in TESTS[name].items():
            if isinstance(told, dict):
                ttnn_perf.record(metric, **told)
            else:
                samples = [told * speed * factor for factor in (0.998, 1.0, 1.002)]
                ttnn_perf.record(metric, samples, unit="ms")
"""
#: Checks a commit out, and is killed or waits.
_CHECKING_OUT = """
import os, signal, sys
from pathlib import Path
from pytest_ttnn_perf.experiments.repository import temporary_checkout
with temporary_checkout(Path(sys.argv[1]), "HEAD") as tree:
    print(tree, flush=True)
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""
#: Of the workers only; the suite's own are nobody's business.
PLUGINS = "-p pytest_ttnn_perf.plugin -p no:cacheprovider"


@dataclass(frozen=True, slots=True)
class Versions:
    """A repository with a project in it, and beside it the machine and its temporary folder."""

    path: Path
    drift: float = 0.0

    def __post_init__(self) -> None:
        for folder in (self.root / "src", self.path / "tmp", self.path / "machine"):
            folder.mkdir(parents=True, exist_ok=True)
        (self.path / "machine" / "processes").touch()
        self.git("init", "--quiet", "--initial-branch=work")
        (self.root / ".gitignore").write_text("__pycache__/\n")
        self.write("test_model.py", dedent(TESTS))

    @property
    def root(self) -> Path:
        return self.path / "project"

    def git(self, *words: str) -> str:
        """Run git."""
        return git_in(self.root, *words, date="2026-11-16T10:00:00Z")

    def write(self, file: str, text: str) -> None:
        place = self.root / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        # Two edits within a second, of as many letters, look the same to a cache of bytecode.
        for cached in (place.parent / "__pycache__").glob(f"{place.stem}.*"):
            cached.unlink()

    def model(self, **tests: Numbers) -> None:
        """Write what the tests of this version record."""
        self.write("src/model.py", f"TESTS = {pformat(tests, sort_dicts=False)}\n")

    def commit(self, subject: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", subject)

    def environment(self, *python_path: str, **variables: str) -> dict[str, str]:
        """Return variables for a run; modules are looked for in ``python_path`` first."""
        given = os.environ.get("PYTHONPATH")
        kept = [*python_path, *([given] if given else [])]
        return {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "GIT_", "CI"))},
            "MACHINE": str(self.path / "machine"),
            "DRIFT": str(self.drift),
            "TMPDIR": str(self.path / "tmp"),
            "COLUMNS": "120",
            "PYTHONPATH": os.pathsep.join(kept),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": PLUGINS,
            **variables,
        }

    def command(
        self, *words: str, python_path: tuple[str, ...] = ("src",), **variables: str
    ) -> Ran:
        """Run ``ttnn-perf``."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *words],
            cwd=self.root, env=self.environment(*python_path, **variables), text=True,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        return Ran(done.returncode, clean(done.stdout), clean(done.stderr))

    def installed_editable(self) -> str:
        """Return a folder for PYTHONPATH that has the effect of an editable install."""
        folder = self.path / "site"
        folder.mkdir(exist_ok=True)
        text = f"import sys\nsys.path.append({str(self.root / 'src')!r})\n"
        (folder / "sitecustomize.py").write_text(text)
        return str(folder)

    def checking_out(self, then: str) -> tuple[list[str], dict[str, str]]:
        """Return a command that checks the last commit out and then ``die`` or ``wait``s."""
        command = [sys.executable, "-c", _CHECKING_OUT, str(self.root), then]
        return command, self.environment(str(Path(__file__).parents[2]))

    def killed(self) -> Path:
        """Return the worktree that a process has left which was killed."""
        command, environment = self.checking_out("die")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return Path(done.stdout.strip())

    def processes(self) -> list[tuple[int, bool]]:
        """Return the processes that ran tests: their id, and whether of the working tree."""
        lines = (self.path / "machine" / "processes").read_text().splitlines()
        split = (line.split(" ", 1) for line in lines)
        return [(int(number), place == str(self.root)) for number, place in split]

    def state(self) -> tuple[str, ...]:
        """Return all of the repository that is the user's."""
        index = (self.root / ".git" / "index").read_bytes().hex()
        status = self.git("status", "--porcelain", "--untracked-files=all")
        return (index, status, self.git("for-each-ref"), self.git("stash", "list"),
                self.git("worktree", "list"), self.git("config", "--local", "--list"))  # fmt: skip

    def left_behind(self) -> list[str]:
        """Return what is left of other versions: in the temporary folder, and in git's memory."""
        worktrees = self.git("worktree", "list", "--porcelain").splitlines()
        known = [line for line in worktrees if line.startswith("worktree ")][1:]
        return [*(file.name for file in (self.path / "tmp").glob("ttnn-perf-ab-*")), *known]
