"""Stands in for ``ttnn-perf`` below the server: what a call's ``what`` says, it does.

As ``python -m tests.mcp.stand_in`` it is the server, with itself as all commands.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

#: Started by the server instead of ``ttnn-perf``.
START = f"import runpy; runpy.run_path({__file__!r}, run_name='stand_in')"
LARGE = {"verdict": "KEEP", "ops": [{"op": f"Matmul_{n}", "ns": n} for n in range(5000)]}


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def answer(document: Any) -> None:
    sys.stdout.write(json.dumps(document))


def work_for_ever() -> None:
    """Measure until interrupted; leave what was measured in a file, as commands do."""
    try:
        say("round 1")
        Path("running").touch()
        while True:
            time.sleep(0.05)
    except KeyboardInterrupt:
        say("interrupted")
        Path("kept").write_text("round 1", encoding="utf-8")
        sys.exit(7)


def act(what: str) -> None:
    match what:
        case "long":
            work_for_ever()
        case "rounds":
            say("round 1")
            say("round 2")
            answer({"rounds": 2})
        case "large":
            answer(LARGE)
        case "wrong":
            say("usage: ttnn-perf")
            say("ttnn-perf: no rule is called 'wrong'")
            sys.exit(2)
        case "failed":
            answer({"failed": True})
            sys.exit(1)
        case "defect":
            say("Traceback (most recent call last):")
            say("ttnn-perf: internal error")
            say("  the command: ttnn-perf explain")
            sys.exit(8)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "prose":
            sys.stdout.write("no JSON at all")
        case "nan":
            answer({"change": float("nan"), "name": "half \ud800"})
        case _:
            answer({"words": sys.argv[1:]})


if __name__ == "stand_in":
    act(sys.argv[-1])
elif __name__ == "__main__":
    from pytest_ttnn_perf.agents import mcp as calls
    from pytest_ttnn_perf.cli.main import main

    calls._START = START  # type: ignore[misc]
    sys.exit(main(["mcp"]))
