"""Kills every command that changes baselines before each of its steps on disk, one try for each.

After every kill the baselines are as before or as after, op tables included, the same command
given again ends as it should, and nothing temporary stays. The suite takes some of the steps, and
all of them with its long tests.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest_ttnn_perf.cli.main as cli
from pytest_ttnn_perf.core.ops import encode_groups
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults import dying
from tests.harness.baselines import N150, T3K, Desk, ops, stored, timed, times
from tests.harness.captures import capture, op
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

A, B, C = "models/test_a.py::test_a", "models/test_a.py::test_b", "models/test_c.py::test_c"
FILE = "baselines/wormhole_b0-n150-1x1/models/test_a.json"
MODEL = """
from pathlib import Path
def test_model(ttnn_perf):
    ttnn_perf.attach(Path(__file__).with_name("capture.csv"))
    ttnn_perf.record("latency", float(Path("latency").read_text()), unit="ms")
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A command that changes baselines, and the project that it is given in."""

    name: str
    prepare: Callable[[Path], None]
    words: tuple[str, ...]

    def run(self, folder: Path, *, dies_before: int = 0) -> int:
        """Give the command; return its exit code, or minus the signal that ended it."""
        where = (dies_before, f"{folder}{os.sep}", f"{folder}.steps")
        program, *words = self.words
        with Path(f"{folder}.log").open("w") as log:
            if program == "pytest":
                command = [sys.executable, "-B", dying.__file__, *map(str, where), *words]
                return subprocess.run(
                    command, cwd=folder, stdout=log, stderr=log, timeout=300, check=False
                ).returncode
            # A fork takes milliseconds where a new Python takes hundreds.
            child = os.fork()
            if child:
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            code = 99
            try:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                sys.stdout = sys.stderr = os.fdopen(1, "w")
                os.chdir(folder)
                dying.die_before(*where)
                code = cli.main(words)
                sys.stdout.flush()
            finally:
                os._exit(code)


def _desk(folder: Path) -> Desk:
    desk = Desk(folder)
    for hardware in (N150, T3K):
        desk.store(A, stored(times(10.0, 10.1), table=ops("Matmul")), hardware)
        desk.store(C, stored(times(7.0), table=ops("Tilize")), hardware)
    desk.store(B, stored(times(5.0), table=ops("Conv2d")))
    return desk


def _changed(folder: Path) -> None:
    table = encode_groups(ops("Softmax", "Tilize"))
    _desk(folder).record(tests={A: timed([12.0], ops=table), B: [6.0], C: [8.0]})


def _gone(folder: Path) -> None:
    _desk(folder).record(tests={C: [7.0]})


def _nights(folder: Path) -> None:
    """Record three runs of main that are a little slower than the baselines."""
    desk, table = _desk(folder), encode_groups(ops("Softmax", "Tilize"))
    (folder / "nights").mkdir()
    for day in (1, 2, 3):
        about = {"branch": "main", "commit": str(day) * 40, "started_at": f"2026-11-0{day}"}
        tests = {A: timed([10.0 + day / 10], ops=table), B: [5.0], C: [7.0]}
        desk.record(f"nights/{day}.json", tests=tests, environment=about)


def _moved(folder: Path) -> None:
    _desk(folder)


def _conflict(folder: Path) -> None:
    """Stop a merge in which both sides have accepted another result of one test."""
    repository, desk = Repository(Desk(folder)), Desk(folder)
    repository.git("init", "-q", "-b", "main")
    desk.store(A, stored(times(10.0), table=ops("Matmul")))
    repository.commit("first")
    repository.git("branch", "other")
    desk.store(A, stored(times(12.0), table=ops("Conv2d")))
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    desk.store(A, stored(times(11.0), table=ops("Softmax")))
    repository.commit("theirs")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "--no-edit", "other", ok=False)
    repository.git("checkout", "-q", "--ours", ".")  # git's own marks are no baseline


def _project(folder: Path, *, stores: bool) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_model.py").write_text(MODEL)
    (folder / "capture.csv").write_text(capture(op("Conv2d", 100_000)))
    (folder / "latency").write_text("1.0")
    if stores:
        assert Scene("", _moved, (*UPDATE, "--ttnn-perf-update=new")).run(folder) == 0
        (folder / "capture.csv").write_text(capture(op("Conv2d", 150_000), op("Matmul", 50_000)))
        (folder / "latency").write_text("2.0")


UPDATE = ("pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest",
          "--ttnn-perf-isolate=inline", "--ttnn-perf-confirm=0")  # fmt: skip
WHY = ("--update", "all", "--reason", "why")
SCENES = (
    Scene("accept", _changed, ("ttnn-perf", "baseline", "accept", "run.json", *WHY)),
    Scene("rename", _moved, ("ttnn-perf", "baseline", "rename", "models/", "cnn/")),
    Scene("refresh", _nights,
          ("ttnn-perf", "baseline", "refresh", "--from-history", "--runs", "nights", "--last=3")),
    Scene("forget", _moved, ("ttnn-perf", "baseline", "forget", "--key", N150.key, "--", A)),
    Scene("prune", _gone, ("ttnn-perf", "baseline", "prune", "run.json", "--full")),
    Scene("merge", _conflict,
          ("ttnn-perf", "baseline", "merge", "--path", FILE, "--take", "theirs")),
    Scene("update", lambda folder: _project(folder, stores=True),
          (*UPDATE, "--ttnn-perf-update=all", "--ttnn-perf-reason=why")),
)  # fmt: skip


def view(folder: Path) -> dict[tuple[str, str], object]:
    """Return what is stored of each test: the levels of its metrics, and its op table."""
    store = BaselineStore(folder / "baselines")
    found: dict[tuple[str, str], object] = {}
    for file in store.all_files():
        for name, test in file.content.tests.items():
            levels = {
                metric: {session.median for session in stored.current}
                for metric, stored in test.metrics.items()
            }
            table = store.ops_of(file.content.hardware, f"{file.test_file}::{name}")
            found[file.content.hardware.key, f"{file.test_file}::{name}"] = (levels, table)
    return found


@dataclass(slots=True)
class Sweep:
    """The tries with one command: what came of the kills before its steps."""

    scene: Scene
    folder: Path
    most_tries: int | None = None

    def failures(self) -> Iterator[tuple[int, str | None]]:
        """Kill the command before its steps, one after another; yield what is wrong, or None."""
        ready = self.folder / "ready"
        ready.mkdir(parents=True)
        self.scene.prepare(ready)
        before = view(ready)
        done = shutil.copytree(ready, self.folder / "done", symlinks=True)
        assert self.scene.run(done) == 0, Path(f"{done}.log").read_text()
        after = view(done)
        assert before != after
        steps = Path(f"{done}.steps").stat().st_size
        stride = 1 if self.most_tries is None else max(1, -(-steps // self.most_tries))
        for number in range(steps, 0, -stride):
            folder = shutil.copytree(ready, self.folder / "try", symlinks=True)
            yield number, self._failure(folder, number, before, after)
            shutil.rmtree(folder)

    def _failure(self, folder: Path, number: int, before: object, after: object) -> str | None:
        code = self.scene.run(folder, dies_before=number)
        if code != -signal.SIGKILL:
            return f"it was not killed, and ended with {code}"
        if (found := view(folder)) not in (before, after):
            return f"the baselines are neither as before nor as after: {found}"
        code = self.scene.run(folder)
        if code:
            return f"given again, it ends with {code}: {Path(f'{folder}.log').read_text()}"
        if (found := view(folder)) != after:
            return f"given again, it leaves {found}"
        left = [*folder.rglob("*.new"), *folder.rglob(".undo.json")]
        return f"given again, it leaves {', '.join(map(str, left))}" if left else None
