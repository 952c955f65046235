"""The words of commands that agents use, and people who want the same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_format

if TYPE_CHECKING:
    import argparse


def status(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf status``."""
    parser.description = (
        "Show what is stored, and what the newest run record says against the baselines as they "
        "are now: what failed, what has no baseline, what was not measured. The exit code is 0."
    )
    add_format(parser)
    parser.set_defaults(run="status:run")


def explain(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf explain``."""
    parser.description = (
        "Show what is known of a rule of the checklist, of tests in the newest run record, or of "
        "a file: of a run record its verdicts and findings, of a capture what the checklist finds. "
        "The exit code is 0."
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="the code or name of a rule, the id or file of tests, a run record, or a capture",
    )
    add_format(parser)
    parser.set_defaults(run="explain:run")


def mcp(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf mcp``."""
    parser.description = (
        "Serve these commands to coding agents, over the Model Context Protocol on stdin and "
        "stdout. Clients start it themselves, in the folder of the project. What it runs, it runs "
        "with the rights of whoever started it."
    )
    parser.set_defaults(run="mcp:run")


def skill(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf skill``."""
    parser.description = (
        "Print how to optimize with these commands, and what not to do, as a skill for coding "
        "agents: Markdown with front matter."
    )
    parser.set_defaults(run="skill:run")
