"""Processes on a machine with the stand-in: each plays a few lines and answers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.device.script import Machine

_MARK = "ANSWER "
_FIRST = f"""
import json, os, sys, time
import ttnn

def answer(value):
    print({_MARK!r} + json.dumps(value), flush=True)

def raised(function, *args, **named):
    try:
        function(*args, **named)
    except RuntimeError as error:
        return str(error)
    return None

def tensor(device, *shape):
    import numpy as np
    return ttnn.from_torch(np.ones(shape or (32, 32)), layout=ttnn.TILE_LAYOUT, device=device)
"""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a process ended, what it printed, and its last answer."""

    code: int
    text: str
    errors: str
    answer: Any


def source(code: str) -> str:
    """Return a program: the lines given, after what they may use."""
    return _FIRST + dedent(code)


def ask(machine: Machine, code: str, *, cwd: Path, **variables: str) -> Answered:
    """Run some lines in a process of their own; at its end, ``answer(value)`` is what it said."""
    return command(machine, sys.executable, "-c", source(code), cwd=cwd, **variables)


def command(machine: Machine, *words: str, cwd: Path, **variables: str) -> Answered:
    """Run a command on the machine."""
    done = subprocess.run(
        words, cwd=cwd, env=machine.environment(**variables), capture_output=True, text=True,
        encoding="latin-1", timeout=300, check=False,
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    said = json.loads(answers[-1].removeprefix(_MARK)) if answers else None
    return Answered(done.returncode, done.stdout, done.stderr, said)
