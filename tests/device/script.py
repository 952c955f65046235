"""What the stand-in for ``ttnn`` under ``fake/`` plays: written here, read by child processes."""

from __future__ import annotations

import compileall
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.harness.project import PLUGINS

FAKE = Path(__file__).parent / "fake"
# Processes under test write no bytecode, as their files change within a second.
compileall.compile_dir(FAKE, quiet=1)

#: TT_FATAL is a RuntimeError with pages of a backtrace; the others end the process, or never end.
FaultKind = Literal["TT_FATAL", "out of memory", "segfault", "abort", "exit", "hang"]
Moment = Literal["query", "open", "op", "read profiler", "close"]


@dataclass(frozen=True, slots=True)
class Op:
    """A program that runs on the device whenever a test calls ``ttnn.<by>``.

    Several may be run by one call; a call that none is scripted for runs one of 1 µs. ``code`` is
    what the profiler calls it: by default what ``by`` runs in reality. Without ``chips`` it runs
    on all of the tensor's device.
    """

    by: str
    ns: float
    code: str = ""
    cores: int = 64
    chips: tuple[int, ...] = ()
    gap_ns: float = 500.0
    fidelity: str = "HiFi2"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """In which processes something happens: they count from 0 in the order they got the chip.

    No ``processes`` are all; ``profiled`` None is with and without the device profiler.
    """

    processes: tuple[int, ...] = ()
    profiled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slower(When):
    """Ops take ``factor`` times as long from their ``call``-th run of a process on, from 0.

    ``code`` is that of the op; without it all are slower.
    """

    factor: float
    code: str = ""
    call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(When):
    """The device fails at the ``number``-th such moment of a process, from 0.

    Moments called "op" are programs that run, replays of a trace included, of all ops together.
    """

    kind: FaultKind
    at: Moment = "op"
    number: int = 0
    exit_code: int = 1


@dataclass(frozen=True, slots=True)
class Memory:
    """What ``ttnn.get_memory_view`` tells of one kind of memory."""

    banks: int
    bytes_per_bank: int
    used_per_bank: int = 0


def _memory() -> dict[str, Memory]:
    return {
        "DRAM": Memory(12, 1_073_741_824, 2_097_152),
        "L1": Memory(64, 1_395_424, 65_536),
        "L1_SMALL": Memory(64, 0),
        "TRACE": Memory(12, 0),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A machine and how it behaves.

    ``remote`` of the ``chips`` have no PCIe of their own. ``lost_programs`` of each read of the
    profiler are lost, however large its buffers. ``realtime_missing`` are chips without a real-time
    profiler, as remote ones always are; ``realtime_delay_s`` is how late its records come. ``wall``
    is how many seconds of the host a second of the device takes: 0 is none. ``compile_s`` is taken
    by the first run of each op whose kernel is not in the cache; with ``cache_misses`` the program
    cache never hits. ``noise`` is the relative error of ops; NaN puts a NaN into each output.
    ``garbage`` is written, as Latin-1, to file descriptors 1 and 2 when a device is opened or
    closed. ``mute``: importing it takes for ever in a process that only asks what it can do.
    """

    arch: str = "wormhole_b0"
    cluster: str = "N150"
    chips: int = 1
    remote: int = 0
    grid: tuple[int, int] = (8, 8)
    clock_mhz: int = 1000
    tracy: bool = False
    ops: tuple[Op, ...] = ()
    slower: tuple[Slower, ...] = ()
    faults: tuple[Fault, ...] = ()
    lost_programs: int = 0
    realtime: bool = True
    realtime_dropped: int = 0
    realtime_missing: tuple[int, ...] = ()
    realtime_delay_s: float = 0.02
    memory: dict[str, Memory] = field(default_factory=_memory)
    wall: float = 0.0
    compile_s: float = 0.0
    cache_misses: bool = False
    noise: float = 0.0
    garbage: str = ""
    mute: bool = False

    def write(self, path: Path) -> Path:
        """Write the script; the folder it is in is also that of the chips unless told otherwise."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder that stands for a machine with the stand-in installed."""

    path: Path
    patience_s: float = 300.0

    def play(self, script: Script) -> None:
        """Let all processes that start from now on find this machine."""
        self.path.mkdir(parents=True, exist_ok=True)
        script.write(self.path / "script.json")

    def environment(self, **more: str) -> dict[str, str]:
        """Return variables for a process on this machine: those of this one without TTNN's.

        Without a script there is no hardware, and a public wheel.
        """
        ours = {n: v for n, v in os.environ.items() if not n.startswith(("TT_", "TTNN_", "FAKE_"))}
        paths = [str(FAKE), str(PLUGINS), *filter(None, [ours.get("PYTHONPATH")])]
        ours |= {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FAKE_TTNN_CHIPS": str(self.path),
            "FAKE_TTNN_PATIENCE": str(self.patience_s),
            "TT_METAL_CACHE": str(self.path / "cache"),
        }
        script = self.path / "script.json"
        return {**ours, **({"FAKE_TTNN": str(script)} if script.exists() else {}), **more}

    def journal(self) -> list[dict[str, Any]]:
        """Return which processes owned a chip, in that order: pid, argv, chips and TT variables."""
        file = self.path / "journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
