"""What the stand-in for ``ttnn`` under ``fake/`` plays: written here, read by child processes."""

from __future__ import annotations

import compileall
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tests.harness.project import PLUGINS

FAKE = Path(__file__).parent / "fake"
# Processes under test write no bytecode, as their files change within a second.
compileall.compile_dir(FAKE, quiet=1)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A process that ends, or never ends, in its ``number``-th program, replays included, from 0.

    Processes count from 0 in the order they got the chip; no ``processes`` are all. ``profiled``
    None is with and without the device profiler.
    """

    kind: Literal["segfault", "hang"]
    number: int = 0
    processes: tuple[int, ...] = ()
    profiled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A machine and how it behaves.

    ``remote`` of the ``chips`` have no PCIe of their own, nor a real-time profiler.
    ``lost_programs`` of each read of the profiler are lost, however large its buffers. ``wall`` is
    how many seconds of the host a second of the device takes: 0 is none. ``mute``: importing it
    takes for ever in a process that only asks what it can do.
    """

    arch: str = "wormhole_b0"
    cluster: str = "N150"
    chips: int = 1
    remote: int = 0
    tracy: bool = False
    ops: tuple[Op, ...] = ()
    faults: tuple[Fault, ...] = ()
    lost_programs: int = 0
    wall: float = 0.0
    mute: bool = False

    def write(self, path: Path) -> Path:
        """Write the script; the folder it is in is also that of the chips unless told otherwise."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path


@dataclass(frozen=True, slots=True)
class Machine:
    """A folder that stands for a machine with the stand-in installed."""

    path: Path

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
            "TT_METAL_CACHE": str(self.path / "cache"),
        }
        script = self.path / "script.json"
        return {**ours, **({"FAKE_TTNN": str(script)} if script.exists() else {}), **more}

    def journal(self) -> list[dict[str, Any]]:
        """Return which processes owned a chip, in that order: pid, argv, chips and TT variables."""
        file = self.path / "journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
