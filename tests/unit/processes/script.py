"""Small programs that stand for a worker."""

from __future__ import annotations

import os
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

from pytest_ttnn_perf.machine.processes import WorkerProcess, start

if TYPE_CHECKING:
    from pathlib import Path

#: Says something and returns the answer, as a worker does, with nothing of ours.
PRELUDE = """
import json, os, signal, socket, sys, time
channel, notes = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
answers = channel.makefile("r")
def send(data):
    channel.sendall(data)
def say(document):
    send(json.dumps(document).encode() + b"\\n")
    return json.loads(answers.readline())
def note(document):
    notes.send(json.dumps(document).encode())
"""
#: For a worker that would never end by itself.
FOR_EVER = "time.sleep(1000)"


def started(folder: Path, source: str, *, shown: bool = False) -> WorkerProcess:
    """Start a program that can say things; its log is in ``folder``."""
    program = PRELUDE + dedent(source)

    def command(*descriptors: int) -> list[str]:
        return [sys.executable, "-c", program, *map(str, descriptors)]

    log = folder / "worker.log"
    return start(command, cwd=folder, environment=dict(os.environ), log=log, shown=shown)
