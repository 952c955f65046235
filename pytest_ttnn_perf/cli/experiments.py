"""Commands that measure without a baseline: ab, bisect, calibrate, try, journal."""

from __future__ import annotations

import argparse
import secrets
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pytest_ttnn_perf.cli.common import add_argument, add_format, number_within
from pytest_ttnn_perf.cli.run import add_script, script_arguments
from pytest_ttnn_perf.core.baseline import MAX_SESSIONS
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.observation import lies_in
from pytest_ttnn_perf.core.settings import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    USUAL_ROUNDS,
    PassChoice,
    ProfilerKind,
    project_settings,
)
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.report.tables import Result, json_text, printed, shown_path, stdout_style
from pytest_ttnn_perf.report.terminal import LiveLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.rounds import Experiment

#: Seeds are short enough to be typed.
_SEEDS: Final = 1_000_000

# Tests are not declared as arguments: pytest's options and their values stay in order.


def add_ab(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [--build CMD] [options]"
    add_argument(parser, "ref REF", "a branch, tag or commit")
    _add_rounds(parser, "side", "both sides", USUAL_ROUNDS)
    add_format(parser)
    add_script(parser, shown=False)
    _pass_on(parser)


def _add_rounds(parser: argparse.ArgumentParser, one: str, every: str, usual: int) -> None:
    add = partial(add_argument, parser)
    add("--rounds N", f"maximum number of processes per {one}, {MIN_ROUNDS} to {MAX_ROUNDS} "
        f"(default: {usual})", type=number_within(MIN_ROUNDS, MAX_ROUNDS), default=usual
    )  # fmt: skip
    add("--order-seed N", "repeat the random order of rounds of another run",
        type=number_within(0, _SEEDS - 1), default=None)  # fmt: skip
    add("--same DIR", f"folder that {every} take from the working tree, such as a build",
        action="append", default=[])  # fmt: skip
    add("--build CMD", f"shell command that builds each {one} in its own checkout (default: the "
        "setting build)")  # fmt: skip


def _pass_on(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False
    parser.set_defaults(passes_on=True)


def run_ab(options: argparse.Namespace) -> Result:
    """Compare the working tree with REF, measured alternately in fresh processes.

    Each round is judged as a pair, so drift of the machine does not matter. No baseline is
    needed or written. All other arguments are passed to pytest; what follows -- is a command,
    with the options of ttnn-perf run. Exit code 7: some results are inconclusive.
    """
    from pytest_ttnn_perf.experiments.ab import ab

    with LiveLine() as line:
        asked = _experiment(options, ("ab", options.ref), options.rest, line)
        return ab(asked, options.ref, shape=options.format)


def _experiment(
    options: argparse.Namespace, command: tuple[str, ...], argv: Sequence[str], line: LiveLine
) -> Experiment:
    from pytest_ttnn_perf.experiments.rounds import Experiment

    argv = _with_command(options, argv)
    settings, same, seed = _settings_of(argv), tuple(options.same), options.order_seed
    return Experiment(
        command, argv, options.rounds, Path.cwd(), settings, line.progress, same,
        seed=secrets.randbelow(_SEEDS) if seed is None else seed,
        build=settings.build if options.build is None else options.build or None,
    )  # fmt: skip


def _with_command(options: argparse.Namespace, argv: Sequence[str]) -> list[str]:
    """Return pytest's arguments with what follows two dashes: a command, or tests."""
    after = options.ids
    if not after:
        return [*argv]
    if shutil.which(after[0]) is None:
        return [*argv, *([] if "good" in options else ["--"]), *after]
    return [*script_arguments(options, after), *argv]


#: Options of pytest that decide which processes are started: pytest reads them in these alone.
_DECIDING: Final[dict[str, Callable[[str], Any]]] = {
    "profiler": ProfilerKind, "passes": PassChoice, "reset": str, "timeout": float,
}  # fmt: skip


def _settings_of(argv: Sequence[str]) -> Settings:
    """Read the settings that pytest's options change; pytest refuses bad values."""
    settings = project_settings()
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


def add_bisect(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ttnn-perf bisect GOOD [BAD] [TESTS] [--metric NAME] [--rounds N]\n"
        "                        [--same DIR] [--build CMD] [--into SUBMODULE] [options]"
    )
    add = partial(add_argument, parser)
    add("good GOOD", "a branch, tag or commit that is fast")
    add("--metric NAME", "the metric to follow (default: the one with the clearest change)")
    _add_rounds(parser, "commit", "all commits", MAX_ROUNDS)
    add("--into SUBMODULE", "go on inside a submodule that the slow commit moves with other "
        "changes; SUBMODULE=GOOD..BAD for a range of it", action="append", default=[])  # fmt: skip
    add_format(parser)
    _pass_on(parser)


def run_bisect(options: argparse.Namespace) -> Result:
    """Find the commit that made a test slower.

    Commits after GOOD up to BAD (default: HEAD), following first parents, are measured alternately
    with GOOD, each in its own folder. If the slow commit only moves a submodule, the search goes on
    inside. After Ctrl-C, a command that continues is printed. All other arguments are passed to
    pytest. Exit code 1: BAD is not slower; 7: inconclusive or interrupted.
    """
    from pytest_ttnn_perf.experiments.bisect import bisect

    bad, argv = split_bad(options.rest, Path.cwd())
    with LiveLine() as line:
        asked = _experiment(options, ("bisect", options.good, bad), argv, line)
        return bisect(
            asked, options.good, bad, options.metric, into=options.into, shape=options.format
        )


def split_bad(words: Sequence[str], cwd: Path) -> tuple[str, list[str]]:
    bad, rest = "HEAD", list(words)
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
            bad = rest.pop(0)
    # Two dashes only part our options from those of pytest.
    return bad, rest[1:] if rest[:1] == ["--"] else rest


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf calibrate TESTS [--sessions N] [options]"
    add = partial(add_argument, parser)
    add("--sessions N", f"number of processes, 2 to {MAX_SESSIONS} (default: 10)",
        type=number_within(2, MAX_SESSIONS), default=10)  # fmt: skip
    add_format(parser)
    _pass_on(parser)


def run_calibrate(options: argparse.Namespace) -> Result:
    """Run the same tests several times, each time in a fresh process.

    For each metric, print the noise within and between sessions, the limit that follows, the
    estimated rate of false alarms, and the smallest regression that is caught in 80 % of runs. All
    other arguments are passed to pytest.
    """
    from pytest_ttnn_perf.experiments.calibrate import calibrate
    from pytest_ttnn_perf.experiments.rounds import Experiment

    with LiveLine() as line:
        settings, sessions = project_settings(), options.sessions
        asked = Experiment(
            ("calibrate",), options.rest, sessions, Path.cwd(), settings, line.progress
        )
        return calibrate(asked, shape=options.format)


def add_journal(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "test TEST", "only this test, file or folder (default: all)", nargs="?")
    add_format(parser)


def run_journal(options: argparse.Namespace) -> Result:
    """Show the steps that ttnn-perf try has recorded for this branch.

    It says what each did, which were kept, and how these add up to the change until now.
    """
    from pytest_ttnn_perf.experiments.journal import (
        journal_listing,
        read_steps,
        steps_of_branch,
        ways_of,
    )

    artifacts = project_settings().artifacts
    steps, gone = steps_of_branch(Path.cwd(), read_steps(artifacts))
    if not steps:
        raise UsageError(
            f"no step is recorded for this branch in {shown_path(artifacts, Path.cwd())}: "
            "ttnn-perf try -m MESSAGE TESTS records one"
        )
    found = ways_of(steps, gone)
    ways = [way for way in found if lies_in(way.test, options.test or "")]
    if options.test and not ways:
        known = ", ".join(way.test for way in found) or "none"
        raise UsageError(f"no step has measured {options.test}; steps have measured: {known}")
    return Result(journal_listing(steps, ways).text(options.format))


def add_try(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ttnn-perf try -m MESSAGE [TESTS] [--base REF] [--rounds N] [--order-seed N]\n"
        "                     [--same DIR] [--build CMD] [options]"
    )
    add = partial(add_argument, parser)
    add("-m MESSAGE", "what the change is, in short", dest="message", required=True)
    add("--base REF", "a branch, tag or commit to compare with instead")
    _add_rounds(parser, "side", "both sides", USUAL_ROUNDS)
    add("--approved-by NAME", "who agreed to the change, kept in the journal")
    add("--format", "output format (default: table)", choices=("table", "json"), default="table")
    add_script(parser, shown=False)
    _pass_on(parser)


def run_try(options: argparse.Namespace) -> Result:
    """Measure the working tree against the last kept state.

    Both are measured alternately, each time in a fresh process. The answer is KEEP, REVERT,
    CANNOT_TELL or NOT_COMPARABLE. What is committed, or was answered with KEEP since, is kept.
    Nothing is committed or reverted: the commands are printed. All other arguments are passed
    to pytest; what follows -- is a command, with the options of ttnn-perf run. Exit code 1: revert,
    or not comparable; 7: cannot tell.
    """
    from pytest_ttnn_perf.experiments.journal import Decision
    from pytest_ttnn_perf.experiments.try_change import try_change, try_document, try_lines

    message, cwd = options.message.strip(), Path.cwd()
    if not message:
        raise UsageError("-m: expected a few words on what was changed, found nothing")
    given = ("--base", options.base) if options.base is not None else ()
    with LiveLine() as line:
        asked = _experiment(options, ("try", "-m", message, *given), options.rest, line)
        tried = try_change(asked, message, options.base, approved_by=options.approved_by)
    if options.format == "json":
        text = json_text(try_document(tried, cwd))
    else:
        text = "".join(f"{line}\n" for line in printed(try_lines(tried, cwd), stdout_style()))
    decision = tried.step.decision
    # What a shell may not go on after.
    failed = decision in {Decision.REVERT, Decision.NOT_COMPARABLE}
    return Result(text, failed=failed, inconclusive=decision is Decision.CANNOT_TELL)
