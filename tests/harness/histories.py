"""Run records over time, in a repository: what hosts measured of commits, written by hand."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.harness.git import git_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.project import Project

TEST = "models/test_llama.py::test_decode"
#: Noise of some tenths of a per cent, the same in every test run.
WOBBLE = (0.0, 0.3, -0.2, 0.1, -0.3, 0.2, -0.1)


def wobbled(value: float, place: int) -> float:
    """Return a value as it is measured the n-th time."""
    return value * (1 + WOBBLE[place % len(WOBBLE)] / 100)


def document(project: Project, *words: str) -> dict[str, Any]:
    """Return what a command that finds no fault says as JSON."""
    ran = project.cli(*words, "--format", "json")
    assert (ran.code, ran.errors) == (0, "")
    found: dict[str, Any] = json.loads(ran.text)
    return found


@contextmanager
def edited(file: Path) -> Iterator[dict[str, Any]]:
    """Let a record be changed."""
    read = json.loads(file.read_text())
    yield read
    file.write_text(json.dumps(read))


@dataclass
class Histories:
    """A folder with run records, and a repository that their commits are of."""

    path: Path
    count: int = 0
    made: list[Path] = field(default_factory=list)

    def git(self, *words: str) -> str:
        """Run git."""
        return git_in(self.path, *words).strip()

    def commits(self, count: int) -> list[str]:
        """Make commits on the branch that is checked out; the first call makes the repository."""
        begun = (self.path / ".git").exists()
        if not begun:
            self.git("init", "-q", "-b", "main")
        branch = self.git("symbolic-ref", "HEAD")
        after = f"from {branch}^0\n" if begun else ""
        stream = []
        for _ in range(count):
            self.count += 1
            said = f"change {self.count}\n"
            committer = "committer Ada <ada@example.org> 1793534400 +0000"
            stream.append(f"commit {branch}\n{committer}\ndata {len(said)}\n{said}{after}\n")
            after = ""
        git_in(self.path, "fast-import", "--quiet", text="".join(stream))  # one process for all
        return self.git("rev-list", "--reverse", f"--max-count={count}", "HEAD").split()

    def record(
        self,
        commit: str | None,
        values: dict[str, float],
        *,
        day: int,
        host: str = "runner-1",
        **more: Any,
    ) -> Path:
        """Write a run record of latencies in milliseconds; ``more`` goes where it belongs."""
        environment = {
            "started_at": f"2026-{9 + day // 30:02}-{1 + day % 30:02}T02:00:00Z",
            "commit": commit, "dirty": False, "runner": host, "ttnn": "0.81.1",
            **more.pop("environment", {}),
        }  # fmt: skip
        verdicts = more.pop("verdicts", {})
        written = more.pop("written", [])
        ops = more.pop("ops", None)
        device = more.pop("device", {})
        tests = {
            test: {
                "metrics": {"latency": {"unit": "ms", "samples": [value]}},
                "verdicts": {"latency": verdicts} if verdicts and test == TEST else {},
                "written": written, "environment": device, "ops": ops,
            }
            for test, value in values.items()
        }  # fmt: skip
        number = len(self.made)
        document = {
            "format": 1, "id": f"run-{number:03}", "environment": environment, "tests": tests,
            "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"}, **more,
        }  # fmt: skip
        folder = self.path / ".ttnn_perf" / "runs"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"run-{number:03}.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        self.made.append(file)
        return file

    def nights(self, values: list[float], hosts: tuple[str, ...] = ("runner-1",)) -> list[str]:
        """Write one run of a commit each, of one test, on hosts in turns."""
        commits = self.commits(len(values))
        for day, (commit, value) in enumerate(zip(commits, values, strict=True)):
            host = hosts[day % len(hosts)]
            self.record(commit, {TEST: wobbled(value, day)}, day=day, host=host)
        return commits
