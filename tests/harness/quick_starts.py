"""Quick starts of pytest and ``ttnn-perf`` in processes of their own.

Nearly all that such a start takes is the import of the same modules. They are imported once, by a
template: a process that does nothing then but fork. A new process is a fork of it, given what a
real start would be given: arguments, variables, folder and files. It is a child of who starts it,
as any other, and has a template of its own beside it, for its workers.

Starts that could show in a result are real: with options of Python, with other variables that
Python reads, and where the project has a module of the same name as one that is imported already.
So are all below a process that has ``TTNN_PERF_TEST_STARTS=real`` among its variables.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REAL = "TTNN_PERF_TEST_STARTS"
_MODULES = ("pytest", "pytest_ttnn_perf.cli.main")
_SCRIPTS = tuple(str(Path(sys.executable).with_name(name)) for name in ("pytest", "ttnn-perf"))
#: Variables that Python reads when it starts, and those of them that are heeded here.
_READ = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC")
_HEEDED = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
_MOST_BYTES = 1 << 17
_MOST_FILES = 100
#: Files have numbers from here on until they get those that were asked for.
_HIGH = 500
_SET_ADOPTS, _GET_ADOPTS = 36, 37


class Start(NamedTuple):
    """What a process is given; ``files`` are the numbers that its files have there."""

    program: str
    arguments: list[str]
    folder: str
    variables: dict[str, str]
    files: list[int]
    new_session: bool

    @property
    def path(self) -> list[str]:
        """Where modules are looked for before Python's own folders."""
        first = self.folder if self.program in _MODULES else str(Path(self.program).parent)
        given = self.variables.get("PYTHONPATH")
        more = given.split(os.pathsep) if given else []
        return [first, *dict.fromkeys(str(Path(self.folder, folder)) for folder in more)]


class Template:
    """The process that others are forked from, as seen by who starts them."""

    def __init__(
        self, place: socket.socket | None = None, modules: frozenset[str] = frozenset()
    ) -> None:
        self._place = place
        self._modules = modules
        self._read = _read(os.environ)
        self._lock = threading.Lock()
        self._fork_exec = subprocess._fork_exec  # type: ignore[attr-defined]

    def install(self) -> None:
        """Have Popen ask here."""
        subprocess._fork_exec = self._start  # type: ignore[attr-defined]

    def _start(self, *asked: Any) -> int:
        words, _, _, kept, folder, variables, stdin, _, _, stdout, _, stderr, *more = asked
        _, failing, _, new_session, *rare = more
        given = _decoded(variables)
        program = _program([os.fsdecode(word) for word in words], given)
        if program is None or not {*rare} <= {None, -1, True, False}:
            return int(self._fork_exec(*asked))
        kept = [number for number in kept if number != failing]
        where = str(Path(os.fsdecode(folder or ".")).absolute())
        start = Start(program[0], program[1:], where, given, [0, 1, 2, *kept], bool(new_session))
        with self._lock:
            if not self._is_alike(start):
                return int(self._fork_exec(*asked))
            streams = (stdin, stdout, stderr)
            files = [own if number == -1 else number for own, number in enumerate(streams)]
            return self._ask(start, [*files, *kept])

    def _is_alike(self, start: Start) -> bool:
        """Tell whether a real start would come to the same."""
        if start.variables.get(REAL) == "real" or _read(start.variables) != self._read:
            return False
        if self._place is None:
            process, self._place = _new_template()
            atexit.register(_end, process, self._place)
            self._modules = frozenset(json.loads(self._place.recv(_MOST_BYTES)))
        return not any(self._modules & _modules_in(folder) for folder in start.path)

    def _ask(self, start: Start, files: list[int]) -> int:
        assert self._place is not None
        with _adopting():
            socket.send_fds(self._place, [json.dumps(start).encode()], files)
            pid = int(self._place.recv(_MOST_BYTES))
            self._place.recv(_MOST_BYTES)  # it is a child of ours now
        return pid


def _program(words: list[str], variables: Mapping[str, str]) -> list[str] | None:
    """Return what is run, and its arguments; None for what only a real start runs."""
    if words[0] == sys.executable:
        # Said twice by a Python that was told so itself.
        said = words[1:2] == ["-B"] and bool(variables.get("PYTHONDONTWRITEBYTECODE"))
        words = words[2:] if said else words[1:]
        if words[:1] == ["-m"]:
            return words[1:] if words[1:2] and words[1] in _MODULES else None
    return words if words[:1] and words[0] in _SCRIPTS else None


def _decoded(variables: Sequence[bytes] | None) -> dict[str, str]:
    if variables is None:
        return dict(os.environ)
    pairs = (os.fsdecode(line).partition("=") for line in variables)
    return {name: value for name, _, value in pairs}


def _read(variables: Mapping[str, str]) -> dict[str, str]:
    return {n: v for n, v in variables.items() if n.startswith(_READ) and n not in _HEEDED}


def _modules_in(folder: str) -> set[str]:
    try:
        entries = [Path(entry) for entry in os.scandir(folder)]
    except OSError:
        return set()
    return {
        entry.name.partition(".")[0]
        for entry in entries
        if entry.suffix in {".py", ".pyc", ".so"} or (entry / "__init__.py").exists()
    }


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Let what a child of ours leaves behind become our child."""
    prctl, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    prctl(_GET_ADOPTS, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_ADOPTS, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_ADOPTS, before.value, 0, 0, 0)


def start_quickly() -> None:
    """Let all processes that this one starts be forked from a template, where that can be had."""
    if sys.platform.startswith("linux") and hasattr(subprocess, "_fork_exec"):
        Template().install()


def _new_template() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    variables = {name: value for name, value in os.environ.items() if name not in _HEEDED}
    # A process with other threads cannot be forked.
    variables["OPENBLAS_NUM_THREADS"] = "1"
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], env=variables, cwd="/",
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return process, ours


def _end(process: subprocess.Popen[bytes], place: socket.socket) -> None:
    place.close()  # it ends where nobody can ask it any more
    process.wait()


def _import_all() -> list[str]:
    """Import what runs import; return the names that it takes."""
    import _pytest.config
    import numpy as np  # noqa: F401

    import pytest_ttnn_perf.plugin

    for name in _pytest.config.default_plugins:
        importlib.import_module(f"_pytest.{name}")
    for module in pkgutil.walk_packages(pytest_ttnn_perf.__path__, "pytest_ttnn_perf."):
        if not module.name.startswith("pytest_ttnn_perf.history.database"):  # SQLAlchemy
            importlib.import_module(module.name)
    for ours in (pytest_ttnn_perf, pytest_ttnn_perf.plugin):
        # pytest would warn that it cannot rewrite what it finds imported.
        ours.__doc__ = f"PYTEST_DONT_REWRITE {ours.__doc__}"
    sys.modules.pop("pytest_ttnn_perf.cli.main")  # it is run
    return sorted({name.partition(".")[0] for name in sys.modules} - {"__main__"})


def _serve(place: socket.socket, modules: list[str]) -> Start:
    """Fork whenever asked to; return in the process that was asked for."""
    while True:
        message, files, _, _ = socket.recv_fds(place, _MOST_BYTES, _MOST_FILES)
        if not message:
            os._exit(0)  # there is nobody any more
        between = os.fork()
        if between:
            for number in files:
                os.close(number)
            os.waitpid(between, 0)
            place.send(b"ours no more")
            continue
        between, pid = os.getpid(), os.fork()
        if pid:
            place.send(str(pid).encode())
            os._exit(0)
        while os.getppid() == between:
            time.sleep(0.0002)
        start = Start(*json.loads(message))
        if start.new_session:
            os.setsid()
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        place.close()
        if os.fork():
            theirs.close()
            _become(start, files, ours, frozenset(modules))
            return start
        ours.close()
        for number in files:
            os.close(number)
        place = theirs


def _become(
    start: Start, files: list[int], template: socket.socket, modules: frozenset[str]
) -> None:
    """Give this process all that it would have been started with."""
    kept = fcntl.fcntl(template, fcntl.F_DUPFD_CLOEXEC, 2 * _HIGH)
    template.close()
    high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number in files]
    for number in files:
        os.close(number)
    for number, target in zip(high, start.files, strict=True):
        os.dup2(number, target)
        os.close(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.variables)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, name)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    time.tzset()
    tempfile.tempdir = None
    sys.dont_write_bytecode = bool(start.variables.get("PYTHONDONTWRITEBYTECODE"))
    sys.argv = [start.program, *start.arguments]
    sys.path[:] = [*start.path, *(folder for folder in sys.path if folder not in start.path[1:])]
    importlib.invalidate_caches()
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module("sitecustomize")
    Template(socket.socket(fileno=kept), modules).install()


def _stream(number: int, name: str) -> io.TextIOWrapper:
    """Return a standard stream as Python opens it."""
    before, writes = getattr(sys, f"__{name}__"), number > 0
    unbuffered = writes and bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = io.FileIO(number, "w" if writes else "r", closefd=False)
    raw.name = f"<{name}>"
    buffer = raw if unbuffered else io.BufferedWriter(raw) if writes else io.BufferedReader(raw)
    by_line = not unbuffered and (number == 2 or raw.isatty())
    return io.TextIOWrapper(
        buffer, before.encoding, before.errors, newline="\n" if writes else None,
        line_buffering=by_line, write_through=unbuffered,
    )  # fmt: skip


def main() -> None:
    """Be a template; and in each fork, the process that was asked for."""
    del sys.path[0]  # of this file
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = socket.socket(fileno=int(sys.argv[1]))
    modules = _import_all()
    gc.collect()
    gc.freeze()  # no collection of a fork looks at what was imported here
    place.send(json.dumps(modules).encode())
    start = _serve(place, modules)
    try:
        if start.program in _MODULES:
            runpy.run_module(start.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(start.program, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End at once: taking down what was imported would be a third of a short run.

    Returns if what was printed cannot be written: that Python itself has to tell.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
