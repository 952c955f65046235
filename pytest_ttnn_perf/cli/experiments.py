"""The words of commands that measure without a baseline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pytest_ttnn_perf.cli.common import add_baselines, add_format, number_within
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.observation import lies_in
from pytest_ttnn_perf.core.settings import PassChoice, ProfilerKind, project_settings
from pytest_ttnn_perf.experiments.calibrate import Calibration, calibrate
from pytest_ttnn_perf.experiments.try_change import Decision
from pytest_ttnn_perf.machine.git import Repository
from pytest_ttnn_perf.report.tables import Result, json_text, printed, shown_path, stdout_style
from pytest_ttnn_perf.report.terminal import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.core.settings import Settings


# ``ttnn-perf ab REF TESTS``: is it my change, or the machine?

#: Options of pytest that decide which processes are started: pytest reads them in these alone.
_DECIDING: Final[dict[str, Callable[[str], Any]]] = {
    "profiler": ProfilerKind, "passes": PassChoice, "reset": str, "timeout": float,
}  # fmt: skip


def run_ab(options: argparse.Namespace) -> Result:
    """Run the rounds; Ctrl-C ends them early and loses nothing."""
    from pytest_ttnn_perf.experiments.ab import Ab, ab

    ref, same, command = options.ref, tuple(options.same), ("ab", options.ref)
    asked = Ab(ref, options.rest, options.rounds, Path.cwd(), same, command)
    settings = with_pytest_options(project_settings(), options.rest)
    ticker = Ticker()
    try:
        return ab(asked, settings, progress=ticker.show, shape=options.format)
    finally:
        ticker.close()


def with_pytest_options(settings: Settings, argv: Sequence[str]) -> Settings:
    """Return the settings with what pytest's own options say; values it refuses, it refuses."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in _DECIDING:
        parser.add_argument(f"--ttnn-perf-{name}", dest=name)
    given, _ = parser.parse_known_args(list(argv))
    for name, read in _DECIDING.items():
        value = getattr(given, name)
        try:
            settings = settings if value is None else replace(settings, **{name: read(value)})
        except ValueError:
            continue
    return settings


# ``ttnn-perf bisect GOOD [BAD] TESTS``: which commit made it slower?


def run_bisect(options: argparse.Namespace) -> Result:
    """Look for the commit; after Ctrl-C the same command goes on."""
    from pytest_ttnn_perf.experiments.bisect import Bisect, bisect

    cwd = Path.cwd()
    bad, argv = split_bad(options.rest, cwd)
    asked = Bisect(
        options.good, bad, argv, options.rounds, cwd, tuple(options.same), options.metric
    )
    settings = with_pytest_options(project_settings(), argv)
    ticker = Ticker()
    try:
        return bisect(asked, settings, progress=ticker.show, shape=options.format)
    finally:
        ticker.close()


def split_bad(words: Sequence[str], cwd: Path) -> tuple[str, list[str]]:
    """Return the commit that the first word names, HEAD if it names none, and pytest's words.

    Raises:
        UsageError: it names a file as well.
    """
    rest = list(words)
    if rest and not rest[0].startswith("-"):
        is_file = (cwd / rest[0].partition("::")[0]).exists()
        try:
            Repository.around(cwd).commit(rest[0])
        except UsageError:
            pass
        else:
            if is_file:
                wrong = f"{rest[0]} is a commit and a file: write {rest[0]}^0, or ./{rest[0]}"
                raise UsageError(wrong)
            return rest[0], _without_dashes(rest[1:])
    return "HEAD", _without_dashes(rest)


def _without_dashes(words: list[str]) -> list[str]:
    """Leave out what only parts our options from those of pytest."""
    return words[1:] if words[:1] == ["--"] else words


# ``ttnn-perf calibrate TESTS``: how noisy tests are, and what a gate can see in them.


def run_calibrate(options: argparse.Namespace) -> Result:
    """Run the sessions; Ctrl-C ends them early and loses nothing."""
    asked = Calibration(
        options.rest, options.sessions, options.write, options.baselines, Path.cwd(), options.reason
    )
    ticker = Ticker()
    try:
        return calibrate(asked, project_settings(), progress=ticker.show, shape=options.format)
    finally:
        ticker.close()


# ``ttnn-perf journal``: what did all these steps amount to?


def run_journal(options: argparse.Namespace) -> Result:
    """Print the steps of this history, and what they sum to."""
    from pytest_ttnn_perf.experiments.journal import journal_listing, journal_markdown, ways_of
    from pytest_ttnn_perf.experiments.try_change import read_steps, steps_of_branch

    artifacts = project_settings().artifacts
    steps, gone = steps_of_branch(Path.cwd(), read_steps(artifacts))
    if not steps:
        message = (
            f"no step is recorded for this branch in {shown_path(artifacts, Path.cwd())}: "
            "ttnn-perf try -m MESSAGE TESTS records one"
        )
        raise UsageError(message)
    found = ways_of(steps, gone)
    ways = [way for way in found if lies_in(way.test, options.test or "")]
    if options.test and not ways:
        known = ", ".join(way.test for way in found) or "none"
        message = f"no step has measured {options.test}; steps have measured: {known}"
        raise UsageError(message)
    if options.format == "markdown":
        return Result(journal_markdown(steps, ways))
    return Result(journal_listing(steps, ways).text(options.format))


# ``ttnn-perf try -m MESSAGE TESTS``: is this change worth keeping?

#: What a shell may not go on after.
_FAILED: Final = frozenset({Decision.REVERT, Decision.NOT_COMPARABLE})


def run_try(options: argparse.Namespace) -> Result:
    """Measure the change, record the step, and say what to do."""
    from pytest_ttnn_perf.experiments.try_change import Try, try_change, try_document, try_lines

    message, cwd = options.message.strip(), Path.cwd()
    if not message:
        wrong = "-m: expected a few words on what was changed, found nothing"
        raise UsageError(wrong)
    settings = with_pytest_options(project_settings(), options.rest)
    same = tuple(options.same)
    asked = Try(message, options.rest, options.rounds, cwd, same, options.base)
    ticker = Ticker()
    try:
        tried = try_change(asked, settings, progress=ticker.show)
    finally:
        ticker.close()
    if options.format == "json":
        text = json_text(try_document(tried, cwd))
    else:
        text = "".join(f"{line}\n" for line in printed(try_lines(tried, cwd), stdout_style()))
    decision = tried.step.decision
    return Result(text, failed=decision in _FAILED, inconclusive=decision is Decision.CANNOT_TELL)


def declare_ab(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf ab``."""
    from pytest_ttnn_perf.core.settings import USUAL_ROUNDS

    parser.usage = "ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [options]"
    parser.description = (
        "Check out REF next to the working tree, and measure both alternately, each time in a "
        "fresh process, until it is clear what changed. Each round is judged as a pair, so drift "
        "of the machine does not matter. No baseline is needed or written. All other arguments are "
        "passed to pytest. Exit code 7: some results are inconclusive."
    )
    parser.allow_abbrev = False
    parser.add_argument("ref", metavar="REF", help="a branch, tag or commit")
    _add_rounds(parser, "maximum number of processes per side", USUAL_ROUNDS)
    _add_same(parser, "folder that both sides take from the working tree, such as a build")
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="experiments:run_ab", passes_on=True)


def declare_try_change(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf try``."""
    from pytest_ttnn_perf.core.settings import USUAL_ROUNDS

    parser.usage = (
        "ttnn-perf try -m MESSAGE [TESTS] [--base REF] [--rounds N] [--same DIR]\n"
        "                     [options]"
    )
    parser.description = (
        "Measure the working tree against the last kept state, alternately and each time in a "
        "fresh process, and answer KEEP, REVERT, CANNOT_TELL or NOT_COMPARABLE. What is committed, "
        "or was answered with KEEP since, is kept. Nothing is committed or reverted: the commands "
        "are printed. All other arguments are passed to pytest. Exit code 1: revert, or not "
        "comparable; 7: cannot tell."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "-m", dest="message", metavar="MESSAGE", required=True, help="what the change is, in short"
    )
    parser.add_argument(
        "--base", metavar="REF", help="a branch, tag or commit to compare with instead"
    )
    _add_rounds(parser, "maximum number of processes per side", USUAL_ROUNDS)
    _add_same(parser, "folder that both sides take from the working tree, such as a build")
    parser.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="output format (default: table)",
    )
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="experiments:run_try", passes_on=True)


def declare_journal(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf journal``."""
    parser.description = (
        "Show the steps that ttnn-perf try has recorded for this branch: what each did, which were "
        "kept, and how the kept ones sum to the change from the first measurement until now."
    )
    parser.add_argument(
        "test", metavar="TEST", nargs="?", help="only this test, file or folder (default: all)"
    )
    add_format(parser, "markdown")
    parser.set_defaults(run="experiments:run_journal")


def declare_bisect(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf bisect``."""
    from pytest_ttnn_perf.core.settings import MAX_ROUNDS

    parser.usage = (
        "ttnn-perf bisect GOOD [BAD] [TESTS] [--metric NAME] [--rounds N]\n"
        "                        [--same DIR] [options]"
    )
    parser.description = (
        "Find the commit that made a test slower. Commits after GOOD up to BAD (default: HEAD), "
        "following first parents, are measured alternately with GOOD, each in its own folder. "
        "After Ctrl-C, the same command continues. All other arguments are passed to pytest. Exit "
        "code 1: BAD is not slower; 7: inconclusive or interrupted."
    )
    parser.allow_abbrev = False
    parser.add_argument("good", metavar="GOOD", help="a branch, tag or commit that is fast")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="the metric to follow (default: the one with the clearest change)",
    )
    _add_rounds(parser, "maximum number of processes per commit", MAX_ROUNDS)
    _add_same(parser, "folder that all commits take from the working tree, such as a build")
    add_format(parser)
    # BAD and the tests are not declared: pytest's options and their values stay in order.
    parser.set_defaults(run="experiments:run_bisect", passes_on=True)


def declare_calibrate(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf calibrate``."""
    from pytest_ttnn_perf.core.baseline import MAX_SESSIONS

    parser.usage = "ttnn-perf calibrate TESTS [--sessions N] [--write] [options]"
    parser.description = (
        "Run the same tests several times, each time in a fresh process. For each metric, print "
        "the noise within and between sessions, the limit that follows, the estimated rate of "
        "false alarms, and the smallest regression that is caught in 80 % of runs. All other "
        "arguments are passed to pytest."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=number_within(2, MAX_SESSIONS),
        default=10,
        help=f"number of processes, 2 to {MAX_SESSIONS} (default: 10)",
    )
    parser.add_argument("--write", action="store_true", help="store the sessions as the baseline")
    parser.add_argument(
        "--reason", metavar="TEXT", help="why to accept results that are worse than the stored ones"
    )
    add_baselines(parser)
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="experiments:run_calibrate", passes_on=True)


def _add_rounds(parser: argparse.ArgumentParser, text: str, usual: int) -> None:
    """Declare ``--rounds``."""
    from pytest_ttnn_perf.core.settings import MAX_ROUNDS, MIN_ROUNDS

    parser.add_argument(
        "--rounds",
        metavar="N",
        type=number_within(MIN_ROUNDS, MAX_ROUNDS),
        default=usual,
        help=f"{text}, {MIN_ROUNDS} to {MAX_ROUNDS} (default: {usual})",
    )


def _add_same(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare ``--same``."""
    parser.add_argument("--same", metavar="DIR", action="append", default=[], help=text)
