"""What users, programs and files rely on, whatever the code behind it looks like.

Nothing here knows a module of the package: all is seen through pytest and ``ttnn-perf``. A change
of a file in ``expected`` is a change of the contract, and needs a line in the changelog.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness import golden
from tests.harness.captures import capture, op, signpost
from tests.harness.project import QUICK, clean, run_command
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.project import Ran

assert_golden = partial(golden.assert_golden, folder=Path(__file__).with_name("expected"))

DECODER = """
    import sys, pytest
    from pathlib import Path
    from model import TESTS

    @pytest.mark.ttnn_perf(target={"latency": "5 ms"}, tolerance={"latency": 0.03})
    def test_decode(ttnn_perf):
        import numpy as np
        ttnn_perf.record("latency", TESTS["a"]["latency"] + 1, unit="ms")
        ttnn_perf.check_pcc(np.arange(9.0), np.arange(9.0), at_least=0.99)
        ttnn_perf.attach(Path(__file__).with_name("ops.csv"))
"""
OPS = (
    signpost("WARMUP"), op("MatmulDeviceOperation", 900_000), signpost("PERF"),
    *(op("Conv2dDeviceOperation", 61_000, cores=8) for _ in range(3)),
    op("MatmulDeviceOperation", 120_000, {"INPUT_0_MEMORY": "DEV_0_DRAM_INTERLEAVED"}),
    op("TilizeDeviceOperation", 18_000), signpost("PERF_END"),
)  # fmt: skip
AFTER = (*OPS[:3], *(op("Conv2dDeviceOperation", 122_000, cores=4) for _ in range(3)), *OPS[6:])
KERNEL_LOG = """\
=== PERF SUMMARY ===
arch: wormhole_b0, freq: 1000 MHz, max_compute_cores: 64
programs: 1 (listed in dispatch order, includes ttnn ops)

--- Program 7 (__kernel) ---
grid: 2x2 (4 cores)
duration: 54,311 cycles (54.3 us)
  DRAM read:        512.0 KB  (256 transfers)

"""
BENCHMARK = {
    "model": "resnet", "model_type": "cnn", "config": {"batch_size": 8},
    "measurements": [{"measurement_name": "samples_per_sec", "value": 21.5}],
}  # fmt: skip


class House:
    """A project with a history: two commits, baselines, two recorded runs, captures."""

    def __init__(self, path: Path) -> None:
        self.versions = Versions(path)
        self.root = self.versions.root
        files = {"ops.csv": capture(*OPS), "after.csv": capture(*AFTER), "kernel.log": KERNEL_LOG}
        files |= {"bench.json": json.dumps(BENCHMARK), "broken.json": "{"}
        for name, text in files.items():
            self.versions.write(name, text)
        self.versions.write("test_decoder.py", re.sub(r"^    ", "", DECODER, flags=re.MULTILINE))
        self.commit("Start", latency=10.0)
        self.first = self.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=first.json")
        self.commit("Slower", latency=14.0)
        self.second = self.pytest("--ttnn-perf", "--ttnn-perf-json=second.json")
        # It stays the newest, whatever a test runs after it.
        newest = ".ttnn_perf/runs/29991231T235959Z-ffffff.json"
        self.versions.write(newest, (self.root / "second.json").read_text())
        self.write_nights()

    def write_nights(self) -> None:
        """Write a month of records, in the middle of which tests get slower."""
        for day in range(1, 31):
            run = json.loads((self.root / "second.json").read_text())
            run["id"] = f"202611{day:02}T010000Z-0000{day:02}"
            run["environment"] |= {"started_at": f"2026-11-{day:02}T01:00:00Z", "dirty": False}
            run["environment"] |= {"commit": f"{day:040x}", "parents": [], "ttnn": f"0.{day // 16}"}
            for test in run["tests"].values():
                test["metrics"]["latency"]["samples"] = [
                    (10 + 4 * (day > 15)) * (1 + day % 3 / 1e3)
                ]
            self.versions.write(f"nights/{run['id']}.json", json.dumps(run))

    def commit(self, subject: str, latency: float) -> None:
        self.versions.model(a={"latency": latency})
        self.versions.commit(subject)

    def pytest(self, *words: str) -> int:
        inline = ("--ttnn-perf-isolate=inline", "--ttnn-perf-confirm=0")
        environment = self.versions.environment("src")
        command = [sys.executable, "-m", "pytest", *QUICK, *inline, *words]
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, check=False
        )
        return done.returncode

    def cli(self, *words: str) -> Ran:
        """Run a command in this process, or in its own where it starts others."""
        before = Path.cwd()
        if words[0] in {"ab", "try", "bisect", "calibrate"}:
            return self.versions.command(*words)
        os.chdir(self.root)
        try:
            return run_command(*words)
        finally:
            os.chdir(before)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(tmp_path_factory.mktemp("contract"))


def shape(value: object, path: str = "$") -> Iterator[tuple[str, str]]:
    """Yield the paths of a document with the types that are found there.

    What an environment has depends on the machine: which packages are there, what CI says.
    """
    names = {"NoneType": "null", "dict": "object", "list": "list"}
    yield path, names.get(type(value).__name__, type(value).__name__)
    if isinstance(value, dict) and not path.endswith(".environment"):
        for key, part in value.items():
            named = "::" in key or path.endswith((".metrics", ".verdicts"))
            yield from shape(part, f"{path}.{'*' if named else _settled(key)}")
    elif isinstance(value, list):
        for part in value:
            yield from shape(part, f"{path}[]")


def shape_text(text: str) -> str:
    found: dict[str, set[str]] = {}
    for path, kind in shape(json.loads(text)):
        found.setdefault(path, set()).add(kind)
    return "\n".join(f"{path}: {' | '.join(sorted(found[path]))}" for path in sorted(found))


def _settled(text: str) -> str:
    """Take out names of commits, times and machines."""
    text = re.sub(r"\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b", "HASH", clean(text))
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "MOMENT", text)
    text = re.sub(r'("commit": )"[0-9a-f]+"', r'\1"COMMIT"', text)
    text = re.sub(r'("arch": "host", "board": )"\w+"', r'\1"ARCH"', text)
    return re.sub(r'("environment": )\{[^}]*\}', r"\1{ENVIRONMENT}", text)


def _words(text: str) -> str:
    """Join what Pythons wrap differently; newer ones call the section of options differently."""
    return " ".join(text.split()).replace("optional arguments:", "options:")


def test_options_marker_and_fixture(project: object) -> None:
    del project  # which is nowhere near this one's configuration
    command = [sys.executable, "-m", "pytest", *QUICK]
    helped, marked, offered = (
        subprocess.run([*command, *more], capture_output=True, text=True, check=False).stdout
        for more in (("--help",), ("--markers",), ("--fixtures",))
    )
    options = re.findall(r"^  (--ttnn-perf.*(?:\n {6,}.*)*)", helped, re.MULTILINE)
    markers = [line for line in marked.splitlines() if line.startswith("@pytest.mark.ttnn_perf")]
    fixtures = re.findall(r"^ttnn_perf\b[^/\n]* --", offered, re.MULTILINE)
    assert_golden("pytest", "\n".join([*map(_words, options), *markers, *fixtures]))


METHODS = """
    measure measure_async measure_pipeline measure_io_overlap region tokens record_tokens record
    check_pcc check_layers check_accuracy attach hardware facts
"""


def test_methods_of_the_fixture(tmp_path: Path) -> None:
    print_them = (
        "import inspect\ndef test_methods(ttnn_perf):\n"
        f"    for name in {METHODS.split()}:\n"
        "        parameters = inspect.signature(getattr(ttnn_perf, name)).parameters.values()\n"
        "        print(name, [p.name + '=' * (p.default is not p.empty) for p in parameters])\n"
    )
    (tmp_path / "test_it.py").write_text(print_them)
    command = [sys.executable, "-m", "pytest", *QUICK, "-q", "-s", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert_golden("fixture", "\n".join(re.findall(r"^\w+ \[.*\]$", ran.stdout, re.MULTILINE)))


def test_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All settings, and what each takes."""
    monkeypatch.chdir(tmp_path)

    def refusal(setting: str) -> str:
        (tmp_path / "ttnn_perf.toml").write_text(f"{setting} = {{ no = 1 }}\n")
        return _words(run_command("status").errors).partition("ttnn_perf.toml: ")[2]

    unknown = refusal("no_such_setting")
    listed = re.search(r"expected one of (.*), found", unknown)
    assert listed, unknown
    assert_golden("settings", "\n".join(map(refusal, listed[1].split(", "))))


#: Commands, and the code that each ends with; the files are those of the house.
SCENARIOS = {
    "a run that passes": "gate first.json",
    "a run that is slower": "gate second.json",
    "a run without baselines": "gate second.json --baselines elsewhere",
    "a run without a baseline, let pass": "gate alone.json --missing warn",
    "a run without a baseline": "gate alone.json",
    "six new tests": "baseline accept six.json --update new --baselines six",
    "most tests are slower": "gate slower.json --baselines six",
    "a file that is broken": "gate broken.json",
    "a file that is not there": "gate none.json",
    "no such option": "gate first.json --nonsense",
    "no such command": "nonsense",
    "both shards": "merge first.json --expect 1",
    "a shard is missing": "merge first.json --expect 2",
    "a capture": "check ops.csv",
    "an unknown rule": "check ops.csv --select TTP999",
    "an unknown signpost": "show ops.csv --start NONE",
    "captures of two kinds": "compare ops.csv kernel.log",
    "two captures": "compare ops.csv after.csv",
    "a plan": "plan ops.csv",
    "no plan": "plan kernel.log",
    "baselines are valid": "baseline check",
    "no baselines": "baseline list --baselines elsewhere",
    "accept nothing worse": "baseline accept second.json --dry-run",
    "accept without a reason": "baseline accept second.json --update all --dry-run",
    "no steps": "journal",
    "no such commit": "ab nonsense",
    "no such rule": "rules TTP999",
    "nothing to explain": "explain nonsense",
}


def test_exit_codes(house: House) -> None:
    record = json.loads((house.root / "first.json").read_text())
    for name, count, slower in (("alone", 1, 1.0), ("six", 6, 1.0), ("slower", 6, 1.2)):
        latency = {"unit": "ms", "samples": [10.0 * slower]}
        tests = {f"x.py::test_{n}": {"metrics": {"latency": latency}} for n in range(count)}
        document = {"format": 1, "id": name, "hardware": record["hardware"], "tests": tests}
        (house.root / f"{name}.json").write_text(json.dumps(document))
    said = [f"{house.first} pytest: new baselines", f"{house.second} pytest: slower"]
    said += [
        f"{house.pytest(*words)} pytest: {' '.join(words)}"
        for words in (
            ("--ttnn-perf", "--ttnn-perf-missing=warn", "--ttnn-perf-baselines=elsewhere"),
            ("--ttnn-perf", "--ttnn-perf-warmup=x"),
            ("--ttnn-perf", "-k", "nothing"),
        )
    ]
    said += [
        f"{house.cli(*words.split()).code} {words}: {name}" for name, words in SCENARIOS.items()
    ]
    assert_golden("exit_codes", "\n".join(said))


#: One document of each command, by the file that has its keys and types.
DOCUMENTS = {
    "gate": "gate second.json",
    "merge": "merge first.json second.json",
    "show_run": "show second.json",
    "show_capture": "show ops.csv",
    "show_ops": "show ops.csv --ops",
    "show_log": "show kernel.log",
    "compare_runs": "compare first.json second.json",
    "compare_captures": "compare ops.csv after.csv",
    "check": "check ops.csv",
    "analyze": "analyze layout ops.csv",
    "plan": "plan ops.csv",
    "rules": "rules",
    "baseline_list": "baseline list",
    "baseline_accept": "baseline accept second.json --update all --reason x --dry-run",
    "history": "history --runs first.json second.json --branch work",
    "trends": "trends --runs nights --branch work",
    "status": "status",
    "doctor": "doctor",
    "import": "import bench.json --hardware wormhole_b0-n150-1x1",
    "ab": "ab HEAD~1 --rounds 3",
    "bisect": "bisect HEAD~1 --rounds 3",
    "calibrate": "calibrate --sessions 2",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(house: House, name: str) -> None:
    ran = house.cli(*DOCUMENTS[name].split(), "--format", "json")
    assert ran.text, ran.errors
    assert_golden(f"json_{name}", shape_text(ran.text))


def test_steps(house: House) -> None:
    """Of ``try``: what it prints, the record that it keeps, the journal of them."""
    house.versions.model(a={"latency": 7.0})
    try:
        tried = house.cli("try", "-m", "half of it", "--rounds", "3", "--format", "json")
    finally:
        house.versions.git("checkout", "--quiet", "src")
    (record,) = (house.root / ".ttnn_perf" / "steps").glob("*.json")
    journal = house.cli("journal", "--format", "json")
    parts = {"try": tried.text, "record": record.read_text(), "journal": journal.text}
    assert_golden("step", "\n".join(f"{name}\n{shape_text(parts[name])}\n" for name in parts))


def test_files(house: House) -> None:
    """The record of a run by keys and types; baselines to the letter, as they are in review."""
    assert_golden("run_record", shape_text((house.root / "second.json").read_text()))
    files = sorted((house.root / "baselines").rglob("*"))
    texts = [
        f"{_settled(str(file.relative_to(house.root)))}\n{_settled(file.read_text())}\n"
        for file in files
        if file.is_file() and file.name != ".lock"
    ]
    assert_golden("baselines", "\n".join(texts))
