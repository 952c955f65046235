"""The process-wide context: the script, the options of the environment, and who owns the chips."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

_PATIENCE_S = 300
_NO_TRACY = ("TT_METAL_DEVICE_PROFILER", "TT_METAL_STREAMING_PROFILER")
_BACKTRACE = "\n".join(
    f" --- /project/build/lib/_ttnncpp.so(+0x{0xB233E8 + 64 * line:x}) [0x7fcbf5{line:06x}]"
    for line in range(35)
)


def log(level: str, kind: str, text: str) -> None:
    """Write a line as the C++ side does: past Python, to file descriptor 1."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    write(1, f"{now} | {level:<8} | {kind:>15} | {text}\n")


def write(descriptor: int, text: str) -> None:
    data = text.encode("latin-1", "replace")
    while data:
        data = data[os.write(descriptor, data) :]


def fatal(place: str, condition: str, info: str) -> RuntimeError:
    """Log and return what TT_FATAL raises."""
    log("critical", "Always", f"TT_FATAL: {info} (assert.hpp:104)")
    text = f"TT_FATAL @ /project/tt_metal/{place}: {condition}\ninfo:\n{info}\nbacktrace:\n"
    return RuntimeError(f"{text}{_BACKTRACE}\n")


def read_script() -> Any:
    """Return the script that this process plays; None for a machine without hardware."""
    path = os.environ.get("FAKE_TTNN")
    if not path:
        return None
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text, object_hook=lambda found: SimpleNamespace(**found))


def answer_questions() -> None:
    """Take for ever to be imported by a process that only asks, if that is in the script."""
    script = read_script()
    while script is not None and script.mute and sys.argv[0] == "-c":
        time.sleep(1)


def read_options() -> tuple[Any, dict[str, str]]:
    """Read script and environment as they are now, and refuse what this build cannot do."""
    script, options = read_script(), dict(os.environ)
    for name in _NO_TRACY:
        if name in options and not (script and script.tracy):
            info = f"{name} requires a Tracy-enabled build of tt-metal."
            raise fatal("llrt/rtoptions.cpp:1048", "false", info)
    return script, options


class Context:
    """What a process has once it has asked for a device; it keeps the chips until it exits."""

    def __init__(self) -> None:
        self.script, self.options = read_options()
        if self.script is None:
            info = "No chips detected in the cluster"
            raise fatal("llrt/tt_cluster.cpp:129", "num_chips > 0", info)
        names = ("TT_VISIBLE_DEVICES", "TT_METAL_VISIBLE_DEVICES")
        visible = next((self.options[name] for name in names if self.options.get(name)), "")
        chips = [int(chip) for chip in visible.split(",")] if visible else range(self.script.chips)
        self.chips = tuple(chips)
        self.profiled = self.options.get("TT_METAL_DEVICE_PROFILER", "").startswith("1")
        self.programs = 0
        folder = os.environ.get("FAKE_TTNN_CHIPS") or Path(os.environ["FAKE_TTNN"]).parent
        self.folder = Path(folder)
        local = [chip for at, chip in enumerate(self.chips) if self.is_local(at)]
        self._locks = [_lock(self.folder, chip) for chip in local]
        self.process = _sign(self.folder, self.chips, self.options)

    def is_local(self, device_id: int) -> bool:
        """Return whether a chip, counted among the visible ones, has PCIe of its own."""
        return bool(self.chips[device_id] < self.script.chips - self.script.remote)

    def reach_program(self) -> None:
        """Come to a program in which the script may want the device to fail."""
        number, self.programs = self.programs, self.programs + 1
        for fault in self.script.faults:
            here = not fault.processes or self.process in fault.processes
            if number == fault.number and here and fault.profiled in {None, self.profiled}:
                _fail(fault.kind)


class _Holder:
    context: Context | None = None


def context() -> Context:
    """Return the context of this process: made, and the chips taken, when first asked for.

    One that fails leaves nothing behind.
    """
    if _Holder.context is None:
        _Holder.context = Context()
    return _Holder.context


def existing() -> Context | None:
    """Return the context if there is one."""
    return _Holder.context


def _lock(folder: Path, chip: int) -> IO[str]:
    """Take a chip for the rest of this process' life; wait for whoever has it."""
    name = f"CHIP_IN_USE_{chip}_PCIe"
    file = (folder / f"TT_UMD_LOCK.{name}").open("a+", encoding="utf-8")
    end, waits = time.monotonic() + _PATIENCE_S, False
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            file.seek(0)
            holder = f"held by thread TID: 0, PID: {file.read().strip()}"
        if not waits:
            log("warning", "UMD", f"Waiting for lock '{name}' which is currently {holder}")
            waits = True
        if time.monotonic() > end:
            write(2, f"FAKE_TTNN: gave up after {_PATIENCE_S} s of waiting for {name}, {holder}\n")
            os.abort()
        time.sleep(0.02)
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _sign(folder: Path, chips: tuple[int, ...], options: dict[str, str]) -> int:
    """Enter this process into the journal; return how many came before."""
    variables = {name: value for name, value in options.items() if name.startswith("TT")}
    entry = {"pid": os.getpid(), "argv": sys.argv, "chips": chips, "variables": variables}
    with (folder / "journal.jsonl").open("a+", encoding="utf-8") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        journal.seek(0)
        before = len(journal.readlines())
        journal.write(json.dumps(entry) + "\n")
    return before


def _fail(kind: str) -> NoReturn:
    if kind == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    # Where the plugin time_flies looks, for a run that waits for this process.
    Path(os.environ["FAKE_TTNN_CHIPS"], "hangs").write_text(str(os.getpid()), encoding="utf-8")
    while True:
        time.sleep(3600)
