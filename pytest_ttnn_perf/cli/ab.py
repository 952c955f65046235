"""``ttnn-perf ab REF TESTS``: is it my change, or the machine?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.records.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.report.live import Ticker
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.report.numbers import Result


#: Options of pytest that decide which processes are started: pytest reads them in these alone.
_DECIDING: Final[dict[str, Callable[[str], Any]]] = {
    "profiler": ProfilerKind, "passes": PassChoice, "reset": str, "timeout": float,
}  # fmt: skip


def run(options: argparse.Namespace) -> Result:
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
