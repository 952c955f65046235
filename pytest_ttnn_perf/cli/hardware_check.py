"""``ttnn-perf hardware-check``: everything once on one board, with a page.

The tests that it runs are a project of their own in a temporary folder. A bundle holds what they
recorded, without paths and without names of hosts and users: it can be judged again anywhere.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf.cli.common import add_argument
from pytest_ttnn_perf.cli.doctor import Surroundings, diagnose, doctor
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.settings import ProfilerKind, project_settings
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.machine.chips import lock_folder
from pytest_ttnn_perf.machine.environment import is_simulated
from pytest_ttnn_perf.machine.processes import interpreter, run_bounded
from pytest_ttnn_perf.plugin.preflight import choose
from pytest_ttnn_perf.report.tables import Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.cli.doctor import Diagnosis

#: The version of a bundle.
BUNDLE_FORMAT: Final = 1
_PLANT: Final = "TTNN_PERF_HARDWARE_CHECK"
_TESTS: Final = f'''\
import os
import threading
from importlib.util import find_spec

import numpy as np
import pytest

ttnn = pytest.importorskip("ttnn")
PLANTED = os.environ.get("{_PLANT}")
quick = pytest.mark.ttnn_perf(warmup=2, iterations=10)


@pytest.fixture
def device():
    device = ttnn.open_device(device_id=0)
    yield device
    ttnn.close_device(device)


def put(values, device):
    return ttnn.Tensor(values, ttnn.bfloat16).to(ttnn.TILE_LAYOUT).to(device)


def model(x):
    y = ttnn.matmul(x, x)
    for _ in range(8 if PLANTED == "slow" else 0):
        y = ttnn.matmul(y, x)
    return ttnn.relu(ttnn.add(y, x))


def values():
    return np.random.default_rng(0).normal(size=(1, 1, 256, 256)).astype(np.float32)


@quick
def test_three_ops(ttnn_perf, device):
    ttnn_perf.measure(model, put(values(), device))


@quick
def test_accuracy(ttnn_perf, device):
    x = values()
    output = ttnn_perf.measure(model, put(x, device))
    if not hasattr(output, "to_torch"):
        output = output.cpu().to_numpy()
    elif find_spec("torch") is None:
        pytest.skip("torch is not installed")
    ttnn_perf.check_pcc(np.maximum(x @ x + x, 0), output, at_least=0.99)


def test_hangs(device):
    if PLANTED == "hang":
        put(values(), device)
        threading.Event().wait(100_000)


@quick
def test_works_afterwards(ttnn_perf, device):
    ttnn_perf.measure(model, put(values(), device))
'''
_FILE, _MODEL = "test_check.py", "test_check.py::test_three_ops"
#: A command that takes longer than this has hung.
_LONGEST_S: Final = 300
#: How long the planted hang may be silent.
_SILENCE_S: Final = 20
_LARGEST_CAPTURE: Final = 2**18


class Step(NamedTuple):
    """One promise; ``held`` may be unknown on this machine."""

    name: str
    held: bool | None
    seen: str
    seconds: float = 0.0


class _Ran(NamedTuple):
    """A run of pytest that has ended, and its record."""

    code: int
    text: str
    record: dict[str, Any]

    def test(self, name: str = _MODEL) -> dict[str, Any]:
        found: dict[str, Any] = self.record.get("tests", {}).get(name, {})
        return found

    def outcomes(self, name: str = _MODEL) -> dict[str, str]:
        verdicts = self.test(name).get("verdicts", {})
        return {metric: verdict["outcome"] for metric, verdict in verdicts.items()}


class HardwareCheck:
    """The steps of a check in one folder, and what they recorded."""

    def __init__(self, folder: Path, diagnosis: Diagnosis, reset: str | None) -> None:
        self.folder, self.diagnosis, self.reset = folder, diagnosis, reset
        self.records: dict[str, dict[str, Any]] = {}
        (folder / _FILE).write_text(_TESTS, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def run(self, name: str, *words: str, planted: str = "") -> _Ran:
        """Run pytest; one that hangs is killed."""
        command = [*interpreter(), "-m", "pytest", "--ttnn-perf", *words]
        command += ["--ttnn-perf-json", f"{name}.json", "--ttnn-perf-artifacts", f"run-{name}"]
        log, file = self.folder / f"{name}.log", self.folder / f"{name}.json"
        with log.open("wb") as output:
            ended = run_bounded(
                command, timeout_s=_LONGEST_S, stdout=output, stderr=output, cwd=self.folder,
                environment={**os.environ, _PLANT: planted},
            )  # fmt: skip
        record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        self.records[name] = record
        return _Ran(ended.code, log.read_text(encoding="utf-8", errors="replace"), record)

    def steps(self) -> Iterator[Step]:
        """Yield each step as it ends."""
        update = ("--ttnn-perf-update=new", "--ttnn-perf-confirm=0")
        first = self.run("record", *update, "-k", "three_ops")
        stored = "three ops recorded" if first.code == 0 else _last_line(first.text)
        yield Step("record", first.code == 0, stored)
        if first.code != 0:
            return
        yield _memory(first)
        yield from self._profilers(update)
        again = self.run("again", "--ttnn-perf-confirm=1", "-k", "three_ops")
        yield Step("same model", again.code == 0, _outcomes_in_words(again.outcomes()))
        slow = self.run("slow", "--ttnn-perf-confirm=1", "-k", "three_ops", planted="slow")
        regressed = [n for n, outcome in slow.outcomes().items() if outcome == "REGRESSED"]
        held = slow.code == 1 and bool(regressed)
        yield Step("planted slow-down", held, _outcomes_in_words(slow.outcomes()))
        yield self._accuracy(update)
        yield self._hang(update)
        yield self._two_processes()

    def _profilers(self, update: Sequence[str]) -> Iterator[Step]:
        for kind in (ProfilerKind.REALTIME, ProfilerKind.DEVICE, ProfilerKind.TRACY):
            name = f"profiler {kind.value}"
            try:
                choose(kind, self.diagnosis.build, self.diagnosis.around.environment)
            except UsageError as error:
                why = str(error).removeprefix(f"--ttnn-perf-profiler {kind.value}: ")
                yield Step(name, None, why.partition(";")[0])
                continue
            own = ("--ttnn-perf-baselines", f"baselines-{kind.value}")
            words = (*update, *own, "--ttnn-perf-profiler", kind.value, "-k", "three_ops")
            ran = self.run(kind.value, *words)
            metric = ran.test().get("metrics", {}).get("device_kernel_time", {})
            samples = metric.get("samples") or []
            seen = f"{counted(len(samples), 'kernel time')} of source {metric.get('source')}"
            yield Step(name, bool(samples), seen if samples else metric.get("note", "no time"))

    def _accuracy(self, update: Sequence[str]) -> Step:
        if self.diagnosis.simulated:
            return Step("PCC", None, "a simulated device computes nothing")
        ran = self.run("accuracy", *update, "-k", "accuracy")
        pcc = ran.test(f"{_FILE}::test_accuracy").get("metrics", {}).get("pcc", {})
        samples = pcc.get("samples") or []
        if not samples and ran.code == 0:
            return Step("PCC", None, "torch is not installed: outputs cannot be read")
        held = ran.code == 0
        return Step("PCC", held, f"pcc {samples[0]:.5f}" if held else _last_line(ran.text))

    def _hang(self, update: Sequence[str]) -> Step:
        mark = self.folder / "reset"
        words = ["--ttnn-perf-timeout", str(_SILENCE_S), "-k", "hangs or afterwards"]
        if self.reset:
            words += ["--ttnn-perf-reset", f"({self.reset}) && echo done > {mark}"]
        ran = self.run("hang", *update, *words, planted="hang")
        reached = ran.test(f"{_FILE}::test_works_afterwards").get("metrics", {})
        survived = ran.code == 1 and "wall_time" in reached
        if self.diagnosis.simulated:
            return Step("planted hang", survived, "the next test ran; nothing to reset")
        if not self.reset:
            return Step("planted hang", None, "no --reset: nothing follows a hang")
        was_reset = "the device was reset" if mark.is_file() else "no reset"
        then = "the next test ran" if survived else "the next test did not run"
        return Step("planted hang", survived and mark.is_file(), f"{was_reset}, {then}")

    def _two_processes(self) -> Step:
        words = ("--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0", "-k", "three_ops")
        with ThreadPoolExecutor() as both:
            ran = list(both.map(lambda name: self.run(name, *words), ("both-1", "both-2")))
        measured = ["wall_time" in each.test().get("metrics", {}) for each in ran]
        seen = f"{sum(measured)} of 2 measured, exit codes {ran[0].code} and {ran[1].code}"
        return Step("two processes", all(measured), seen)

    def bundle(self, steps: Sequence[Step], told: object) -> dict[str, Any]:
        """Return everything recorded, without paths and names."""
        diagnosis = self.diagnosis
        files = sorted(self.folder.glob("baselines*/**/*.*"))
        texts = {
            file.relative_to(self.folder).as_posix(): file.read_text(encoding="utf-8")
            for file in files
            if file.suffix in {".json", ".csv"} and file.stat().st_size <= _LARGEST_CAPTURE
        }
        document = {
            "format": BUNDLE_FORMAT,
            "hardware": diagnosis.hardware.key if diagnosis.hardware else None,
            "simulated": diagnosis.simulated,
            "versions": {
                "plugin": __version__,
                "python": platform.python_version(),
                "ttnn": diagnosis.build.version,
            },
            "steps": [step._asdict() for step in steps],
            "doctor": told,
            "records": self.records,
            "files": texts,
        }
        cleaned: dict[str, Any] = _cleaned(document, self.folder)
        return cleaned


def _memory(ran: _Ran) -> Step:
    found = {
        name: metric["samples"]
        for name, metric in ran.test().get("metrics", {}).items()
        if metric["unit"] == "B" and metric["samples"]
    }
    seen = ", ".join(f"{name} {samples[0]:g}" for name, samples in found.items())
    return Step("memory", bool(found), seen or "no bytes were recorded")


def _outcomes_in_words(outcomes: Mapping[str, str]) -> str:
    every = sorted(set(outcomes.values()))
    named = (f"{word}: {', '.join(n for n, o in outcomes.items() if o == word)}" for word in every)
    return "; ".join(named) or "no verdict"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" =")]
    failed = next((line for line in reversed(lines) if line.startswith(("FAILED", "ERROR"))), None)
    return failed or (lines[-1] if lines else "nothing was printed")


#: Members that name a machine, a person or the code of somebody else.
_NAMED: Final = frozenset({
    "host", "host_hash", "runner", "commit", "committed_at", "branch", "parents", "hugepages",
})  # fmt: skip
_PATH: Final = re.compile(r"(?<![\w.])(?:~|/[\w.+-]+)/[\w./+-]*")


def _cleaned(value: Any, folder: Path) -> Any:
    """Return JSON without paths, names of hosts and of users."""
    names = [name for name in (platform.node(), _user()) if len(name) > 2]

    def clean(text: str) -> str:
        text = _PATH.sub("<path>", text.replace(str(folder), "<path>"))
        for name in names:
            text = re.sub(rf"\b{re.escape(name)}\b", "<name>", text)
        return text

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {clean(k): walk(v) for k, v in value.items() if k not in _NAMED}
        if isinstance(value, (list, tuple)):
            return [walk(item) for item in value]
        return clean(value) if isinstance(value, str) else value

    return walk(value)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for it
        return ""


def add_hardware_check(parser: argparse.ArgumentParser) -> None:
    add = partial(add_argument, parser)
    add("--out DIR", "where bundle and page are written (default: hardware-check)",
        type=Path, default=Path("hardware-check"))  # fmt: skip
    add("--reset CMD", "what brings a device back after the planted hang, such as 'tt-smi -r'")


def run_hardware_check(options: argparse.Namespace) -> Result:
    """Try everything once on this board; write a bundle and a page.

    Doctor, a model of three ops, every profiler that this ttnn offers, a planted slow-down, PCC, a
    planted hang with --reset, memory, and two processes at once: ten minutes at most. The bundle
    holds no paths and no names of hosts or users. Exit 1 if a step did not hold.
    """

    def say(line: str) -> None:
        sys.stderr.write(f"ttnn-perf: {inert(line)}\n")
        sys.stderr.flush()

    settings, environment = project_settings(), dict(os.environ)
    around = Surroundings(environment, settings.lock_folder or lock_folder())
    diagnosis = diagnose(settings, around, print_line=say)
    if not diagnosis.chips and not is_simulated(environment):
        raise UsageError("no device was found: ttnn-perf doctor says what is missing")
    asked = doctor(settings, around, shape="json", print_line=lambda _: None)
    told = json.loads(asked.text)
    blocked = [each["name"] for each in told["checks"] if each["blocks"] and each["ok"] is False]
    found = f"blocked by {', '.join(blocked)}" if blocked else f"profiler {told['profiler']}"
    steps = [Step("doctor", not blocked, found)]
    say(_line(steps[0]))
    with tempfile.TemporaryDirectory(prefix="ttnn-perf-check-") as folder:
        check = HardwareCheck(Path(folder), diagnosis, options.reset)
        start_s = time.monotonic()
        for step in check.steps():
            now_s = time.monotonic()
            steps.append(step._replace(seconds=round(now_s - start_s, 1)))
            start_s = now_s
            say(_line(steps[-1]))
        bundle = check.bundle(steps, told)
    page = page_of(bundle)
    write_text(options.out / "bundle.json", json.dumps(bundle, indent=1) + "\n")
    write_text(options.out / "page.md", page)
    failed = any(step.held is False for step in steps)
    return Result(f"{page}\nwrote {options.out}/bundle.json and page.md\n", failed=failed)


_WORDS: Final = {True: "held", False: "DID NOT HOLD", None: "not shown"}


def _line(step: Step) -> str:
    return f"{step.name}: {_WORDS[step.held]}: {step.seen}"


def page_of(bundle: Mapping[str, Any]) -> str:
    """Return the page of a bundle, in Markdown."""
    where = bundle["hardware"] or "unknown hardware"
    if bundle["simulated"]:
        where = f"{where}, simulated: no time of it means anything"
    versions = ", ".join(f"{name} {value}" for name, value in bundle["versions"].items())
    rows = [
        f"| {step['name']} | {_WORDS[step['held']]} | {step['seconds']:g} | "
        f"{step['seen'].replace('|', ' ')} |"
        for step in bundle["steps"]
    ]
    head = ["# Hardware check", "", f"{where}. {versions}.", ""]
    table = ["| step | result | seconds | seen |", "|---|---|---|---|", *rows]
    return "\n".join([*head, *table]) + "\n"
