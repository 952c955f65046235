"""``ttnn-perf bisect GOOD [BAD] TESTS``: which commit made it slower?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.cli.ab import with_pytest_options
from pytest_ttnn_perf.processes.git import Repository
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.numbers import Result


def run(options: argparse.Namespace) -> Result:
    """Look for the commit; after Ctrl-C the same command goes on."""
    from pytest_ttnn_perf.experiments.bisect import bisect
    from pytest_ttnn_perf.experiments.bisect_report import Bisect

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
