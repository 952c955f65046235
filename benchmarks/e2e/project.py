"""A temporary project whose tests do a known amount of work, and the commands that run in it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCELERATOR: Final = Path(__file__).with_name("accelerator.py")
LEAST_CALL_MS: Final = 50
#: The models differ in size, the smallest first.
STEP_MS: Final = 10
#: Above the least: what the amount is set by may have been a moment of slow clocks.
COMPUTE_MS: Final = 60
#: Runs beside a neighbour must be short; a call is still longer than a turn on a processor.
NEIGHBOUR_MS: Final = 20
#: Rounds of hashing in each call beside a neighbour: about a millisecond.
HOST_ROUNDS: Final = 1_500
#: The neighbour begins within this part of the time that a quiet run takes.
BEGINS: Final = (0.2, 0.8)
#: No command here takes nearly as long unless it hangs.
PATIENCE_S: Final = 1800.0
STOPPING_S: Final = 20.0
MOST_MODELS: Final = len(ascii_lowercase)

_HEAD: Final = '''"""Models of a known amount of work each."""
import json
from pathlib import Path

import pytest
'''
_BODY: Final = """
AMOUNTS = json.loads(Path(__file__).with_name("amounts.json").read_text())


@pytest.mark.ttnn_perf
@pytest.mark.parametrize("name", AMOUNTS)
def test_model(ttnn_perf, name):
"""
#: The test file by kind of work. Amounts: µs of device time, rounds of hashing.
_TESTS: Final[dict[str, str]] = {
    "device": f"""{_HEAD}import numpy as np
from accelerator import Accelerator
{_BODY}    device, x = Accelerator(), np.eye(8)
    ttnn_perf.measure(
        device.linear, x, x, device_ms=AMOUNTS[name] / 1000, sync=device.synchronize
    )
""",
    "compute": f"""{_HEAD}from hashlib import pbkdf2_hmac
{_BODY}    ttnn_perf.measure(pbkdf2_hmac, "sha256", b"model", b"salt", AMOUNTS[name])
""",
}
#: A model as it is on an accelerator: most of a call is the device's, which a neighbour does not
#: disturb, and some is the host's, which it does.
_TESTS["neighbour"] = f"""{_HEAD}from hashlib import pbkdf2_hmac

import numpy as np
from accelerator import Accelerator
{_BODY}    device, x = Accelerator(), np.eye(8)

    def step():
        pbkdf2_hmac("sha256", b"model", b"salt", {HOST_ROUNDS})
        return device.linear(x, x, device_ms=AMOUNTS[name] / 1000)

    ttnn_perf.measure(step, sync=device.synchronize)
"""
KINDS: Final = tuple(_TESTS)


@dataclass(frozen=True)
class Ran:
    """How a command ended. ``code`` is None if it hung.

    ``others`` is the share of all processors that other processes kept busy meanwhile; None where
    the system does not tell.
    """

    code: int | None
    seconds: float
    others: float | None


@dataclass(frozen=True)
class Project:
    """A folder with one test file. ``amounts`` says how much work each model does."""

    folder: Path
    amounts: dict[str, int]

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of the tests, one per model."""
        return tuple(f"test_models.py::test_model[{model}]" for model in self.amounts)

    @property
    def baselines(self) -> Path:
        """Where the baselines are."""
        return self.folder / "baselines"

    def set_work(self, slowed: str | None, *, more: float) -> None:
        """Let the test ``slowed`` do ``more`` work, as a fraction; the others what they did."""
        amounts = {
            model: round(amount * (1 + more)) if test == slowed else amount
            for test, (model, amount) in zip(self.tests, self.amounts.items(), strict=True)
        }
        (self.folder / "amounts.json").write_text(json.dumps(amounts), encoding="utf-8")

    def calibrate(self, sessions: int) -> list[dict[str, Any]]:
        """Store a baseline of so many sessions; return what it tells about each test."""
        self.set_work(None, more=0)
        output = self.folder / "calibrate.json"
        words = ["pytest_ttnn_perf.cli.main", "calibrate", "test_models.py"]
        words += ["--sessions", str(sessions), "--write", "--format", "json"]
        code = self._run(words, output)
        told = output.read_text(encoding="utf-8")
        if code != 0:
            message = f"ttnn-perf calibrate ended with exit code {code}\n{told}"
            raise SystemExit(message)
        found = json.loads(told)["tests"]
        assert [row["test"] for row in found] == list(self.tests), found
        return list(found)

    def update(self, runs: int) -> float:
        """Add so many runs to the baseline, as on as many nights; return the seconds of one."""
        seconds = 0.0
        for number in range(runs):
            log = self.folder / f"update-{number}.log"
            start_s = time.monotonic()
            code = self._run(["pytest", "--ttnn-perf", "--ttnn-perf-update"], log)
            seconds = time.monotonic() - start_s
            if code not in {0, 6}:
                told = log.read_text(encoding="utf-8")
                message = f"pytest --ttnn-perf-update ended with exit code {code}\n{told}"
                raise SystemExit(message)
        return seconds

    def gate(self, record: Path, *, neighbour_after_s: float | None = None) -> Ran:
        """Run the gate as a user does; if asked, with a neighbour from some moment on.

        Beside the record it leaves pytest's own report of what failed, as JUnit XML.
        """
        log, junit = record.with_suffix(".log"), record.with_suffix(".xml")
        start_s, used_s, busy_s = time.monotonic(), _children_s(), _busy_s()
        words = ["pytest", "--ttnn-perf", "--ttnn-perf-json", str(record), "--junitxml", str(junit)]
        with _neighbour(neighbour_after_s):
            code = self._run(words, log, errors=subprocess.STDOUT)
        seconds = time.monotonic() - start_s
        others = None
        if busy_s is not None:
            by_others_s = (_busy_s() or busy_s) - busy_s - (_children_s() - used_s)
            others = max(0.0, by_others_s / seconds / (os.cpu_count() or 1))
        return Ran(code, seconds, others)

    def _run(self, words: list[str], output: Path, errors: int | None = None) -> int | None:
        unwanted = ("PYTEST_", "TTNN_PERF_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        with output.open("w") as out:
            # A session of its own: Ctrl-C is for this process, which passes it on.
            process = subprocess.Popen(
                [sys.executable, "-m", *words], cwd=self.folder, env=environment,
                stdout=out, stderr=errors, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                _stop(process)
                return None
            except BaseException:
                _stop(process)
                raise


@contextmanager
def _neighbour(after_s: float | None) -> Iterator[None]:
    """Keep all processors busy from ``after_s`` on; not at all for None."""
    if after_s is None:
        yield
        return
    busy: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        words = [sys.executable, "-c", "while True: pass"]
        busy.extend(subprocess.Popen(words) for _ in range(os.cpu_count() or 1))

    timer = threading.Timer(after_s, begin)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for process in busy:
            process.kill()
            process.wait()


def make(folder: Path, kind: str, *, models: int) -> Project:
    """Write the project. How much each model works is settled here, once and for all."""
    names = ascii_lowercase[:models]
    least_ms, step_ms = least_call_ms(kind), 0 if kind == "neighbour" else STEP_MS
    if kind == "compute":
        round_ms, least_ms = _round_ms(), COMPUTE_MS
        amounts = {
            name: math.ceil((least_ms + step_ms * i) / round_ms) for i, name in enumerate(names)
        }
    else:
        amounts = {name: 1000 * (least_ms + step_ms * i) for i, name in enumerate(names)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_models.py").write_text(_TESTS[kind], encoding="utf-8")
    shutil.copy(ACCELERATOR, folder)
    # Makes this folder the root, whatever lies above it, and leaves all settings at their default.
    text = "[tool.pytest.ini_options]\n[tool.ttnn_perf]\n"
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return Project(folder, amounts)


def least_call_ms(kind: str) -> int:
    """Return how long every call of this kind of work takes at least."""
    return NEIGHBOUR_MS if kind == "neighbour" else LEAST_CALL_MS


def _round_ms() -> float:
    """Return how long a round of hashing takes when nothing else is in the way.

    In processor time, in which the turns of other processes do not count.
    """
    rounds, calls = 20_000, 30
    fastest_s = math.inf
    for _ in range(calls):
        start_s = time.process_time()
        hashlib.pbkdf2_hmac("sha256", b"model", b"salt", rounds)
        fastest_s = min(fastest_s, time.process_time() - start_s)
    return fastest_s * 1000 / rounds


def _children_s() -> float:
    """Return the processor time of all children so far, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _busy_s() -> float | None:
    """Return the time that all processors together have been busy, or taken away by the host."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of the first two.
    ticks = [int(word) for word in line.split()[1:9]]
    return (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a command as Ctrl-C does, so that it takes its own children along."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=STOPPING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
