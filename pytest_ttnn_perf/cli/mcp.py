"""``ttnn-perf mcp``: the commands as tools of coding agents."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from pytest_ttnn_perf.agents.server import Server
from pytest_ttnn_perf.agents.tools import Toolbox
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse


def run(_: argparse.Namespace) -> Result:
    """Serve the client that started this process, until it is gone."""
    from pytest_ttnn_perf.cli.main import command_names

    if sys.stdin.isatty():
        sys.stderr.write(
            "ttnn-perf mcp waits for a client, with one line of JSON per message. Clients\n"
            "start it themselves: put it into their configuration. Ctrl-D ends it.\n"
        )
    # A shell starts what it runs in the background deaf to Ctrl-C, and commands would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tools = Toolbox(frozenset(command_names()))
    # Without a buffer: what a client that is gone has not read must not be written again at exit.
    with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as stdout:
        Server(tools, sys.stdin.buffer, stdout).serve()
    return Result("")
