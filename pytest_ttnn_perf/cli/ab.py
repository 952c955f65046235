"""``ttnn-perf ab REF TESTS``: is it my change, or the machine?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.cli.options import Ticker, add_format, project_settings
from pytest_ttnn_perf.records.experiments import MAX_ROUNDS, MIN_ROUNDS
from pytest_ttnn_perf.records.settings import PassChoice, ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.records.result import Result
    from pytest_ttnn_perf.records.settings import Settings


#: Options of pytest that decide which processes are started: pytest reads them in these alone.
_DECIDING: Final[dict[str, Callable[[str], Any]]] = {
    "profiler": ProfilerKind, "passes": PassChoice, "reset": str, "timeout": float,
}  # fmt: skip


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "ab",
        usage="ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [options of this or of pytest]",
        help="compare a commit with the working tree, in turns on this machine; exit 1 when worse",
        description="Check REF out beside the working tree, and measure both in turns, each time "
        "in a fresh process. Rounds are judged pair by pair, so that a machine that drifts does "
        "not matter. No baseline is needed, and none is written. What is not an option of this "
        "command is passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("ref", metavar="REF", help="a branch, a tag or a commit")
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_rounds,
        default=5,
        help=f"processes of each side, {MIN_ROUNDS} to {MAX_ROUNDS} (default: 5)",
    )
    parser.add_argument(
        "--same",
        metavar="DIR",
        action="append",
        default=[],
        help="code that both sides take from the working tree, such as a build in it",
    )
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run=run, passes_on=True)


def run(options: argparse.Namespace) -> Result:
    """Run the rounds; Ctrl-C ends them early and loses nothing."""
    from pytest_ttnn_perf.experiments.ab import Ab, ab

    asked = Ab(options.ref, options.rest, options.rounds, Path.cwd(), tuple(options.same))
    settings = _decided(project_settings(), options.rest)
    ticker = Ticker()
    try:
        return ab(asked, settings, progress=ticker.show, shape=options.format)
    finally:
        ticker.close()


def _decided(settings: Settings, words: Sequence[str]) -> Settings:
    """Return the settings with what pytest's own options say; values it refuses, it refuses."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in _DECIDING:
        parser.add_argument(f"--ttnn-perf-{name}", dest=name)
    given, _ = parser.parse_known_args(list(words))
    for name, read in _DECIDING.items():
        value = getattr(given, name)
        try:
            settings = settings if value is None else replace(settings, **{name: read(value)})
        except ValueError:
            continue
    return settings


def _rounds(text: str) -> int:
    if not text.isdecimal() or not MIN_ROUNDS <= int(text) <= MAX_ROUNDS:
        message = f"expected a whole number from {MIN_ROUNDS} to {MAX_ROUNDS}, found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
