"""Small programs that stand for a worker."""

from __future__ import annotations

import os
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

from pytest_ttnn_perf.machine.processes import WorkerProcess

if TYPE_CHECKING:
    from pathlib import Path

#: Says something and returns the answer, as a worker does, with nothing of ours.
PRELUDE = """
import json, os, signal, socket, sys, time
channel = socket.socket(fileno=int(os.environ["TTNN_PERF_CHANNEL"]))
answers = channel.makefile("r")
def send(data):
    channel.sendall(data)
def say(document):
    send(json.dumps(document).encode() + b"\\n\\n")
    return json.loads(answers.readline())
def note(document):
    send(json.dumps(document).encode() + b"\\n")
"""
#: For a worker that would never end by itself.
FOR_EVER = "time.sleep(1000)"


def started(folder: Path, source: str, *, shown: bool = False) -> WorkerProcess:
    """Start a program that can say things; its log is in ``folder``."""
    command = [sys.executable, "-c", PRELUDE + dedent(source)]
    log = folder / "worker.log"
    return WorkerProcess(command, cwd=folder, environment=os.environ, log=log, shown=shown)
