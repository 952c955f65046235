"""The command-line options. Loaded by every pytest run, so it imports next to nothing."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


UPDATE_CHOICES: Final = ("new", "improved", "all")
MISSING_CHOICES: Final = ("fail", "warn", "ignore")
ISOLATE_CHOICES: Final = ("auto", "process", "inline")
PROFILER_CHOICES: Final = ("auto", "off", "realtime", "device", "tracy", "ttlang")
CHECKLIST_CHOICES: Final = ("enforce", "report", "off")
PASSES_CHOICES: Final = ("both", "wall", "device")
#: Each of these turns the gate on.
TURN_ON: Final = ("ttnn_perf", "ttnn_perf_all", "ttnn_perf_update", "ttnn_perf_replay")


def declare_options(parser: pytest.Parser) -> None:
    """Declare every option. Help texts are single phrases without a full stop.

    No option has a default here: only a value that was given may win over the configuration file.
    """
    group = parser.getgroup("ttnn-perf", "performance gate for TTNN model tests")
    add = group.addoption
    add("--ttnn-perf", action="store_true", help="Turn the performance gate on")
    add("--ttnn-perf-all", action="store_true", help="Measure every collected test")
    add("--ttnn-perf-baselines", metavar="DIR", help="Where baselines live (default: baselines)")
    add(
        "--ttnn-perf-update",
        metavar="WHAT",
        nargs="?",
        const="improved",
        type=_update,
        help="Write results into the baselines: new, improved (when bare) or all",
    )
    add("--ttnn-perf-reason", metavar="TEXT", help="Why a result is accepted, kept beside it")
    add(
        "--ttnn-perf-missing",
        choices=MISSING_CHOICES,
        help="What a test without a comparable baseline does (default: fail)",
    )
    _declare_measuring(add)
    _declare_devices(add)
    _declare_checklist(add)
    add("--ttnn-perf-json", metavar="PATH", help="Write the run record to PATH")
    add("--ttnn-perf-markdown", metavar="PATH", help="Write a report for reviewers to PATH")
    add("--ttnn-perf-gitlab", metavar="PATH", help="Write a code quality report to PATH")
    add("--ttnn-perf-label", metavar="TEXT", help="Name of this run's change")
    add(
        "--ttnn-perf-artifacts",
        metavar="DIR",
        help="Where run records are kept (default: .ttnn_perf)",
    )
    add(
        "--ttnn-perf-replay",
        metavar="DIR",
        help="Take device metrics from artifacts recorded in DIR instead of hardware",
    )


def _declare_measuring(add: Callable[..., None]) -> None:
    """Declare where, how often and for how long tests are measured."""
    add(
        "--ttnn-perf-isolate",
        choices=ISOLATE_CHOICES,
        help="Run tests in worker processes, or inline for debugging (default: auto = process)",
    )
    add(
        "--ttnn-perf-confirm",
        metavar="N",
        type=_at_least(0),
        help="Times a suspect is measured again in a fresh process before it fails (default: 2)",
    )
    add(
        "--ttnn-perf-timeout",
        metavar="SECONDS",
        type=_at_least(0),
        help="Kill a worker that is silent for so long; 0 = never (default: 3600)",
    )
    add(
        "--ttnn-perf-warmup",
        metavar="N",
        type=_at_least(0),
        help="Untimed calls before the samples, for tests that say nothing (default: 3)",
    )
    add(
        "--ttnn-perf-iterations",
        metavar="N",
        type=_at_least(1),
        help="Timed calls, for tests that say nothing (default: 10)",
    )


def _declare_devices(add: Callable[..., None]) -> None:
    """Declare how devices are profiled."""
    add(
        "--ttnn-perf-profiler",
        choices=PROFILER_CHOICES,
        help="Where device times come from (default: auto, what this ttnn and machine can do)",
    )
    add(
        "--ttnn-perf-passes",
        choices=PASSES_CHOICES,
        help="Leave out the wall or the device pass (default: both)",
    )
    add(
        "--ttnn-perf-reset",
        metavar="CMD",
        help="Run CMD after a worker with a device hung or died, such as 'tt-smi -r'",
    )


def _declare_checklist(add: Callable[..., None]) -> None:
    """Declare what becomes of findings, and which are looked for."""
    add(
        "--ttnn-perf-checklist",
        choices=CHECKLIST_CHOICES,
        help="Whether errors of the checklist fail a test (default: enforce)",
    )
    add(
        "--ttnn-perf-select", metavar="CODES", help="Ask only these rules, or prefixes: TTP6,TTP203"
    )
    add("--ttnn-perf-ignore", metavar="CODES", help="Do not ask these rules, or prefixes")


def gate_is_wanted(config: pytest.Config) -> bool:
    """Tell whether this run is gated, at next to no cost when it is not."""
    options = config.known_args_namespace
    if any(getattr(options, name) for name in TURN_ON):
        return True
    # A configuration file may turn the gate on; parsing it is worth it only if it names us.
    if not _may_configure_us(config.rootpath):
        return False
    from pytest_ttnn_perf.plugin.settings import settings_of

    return settings_of(config).enabled


def _may_configure_us(root: Path) -> bool:
    """Tell whether to read closer. Most projects have nothing that names ttnn, or depend on us."""
    try:
        names = os.listdir(root)  # noqa: PTH208 (folders may be large)
        if any("ttnn" in name.lower() and name.lower().endswith(".toml") for name in names):
            return True
        text = (root / "pyproject.toml").read_bytes().lower() if "pyproject.toml" in names else b""
    except OSError:
        return False
    if b"ttnn" not in text:
        return False
    from pytest_ttnn_perf._base.config_names import mentions_us

    return mentions_us(re.sub(rb"""(?<!\.)["']pytest-ttnn-perf""", b"", text))


def _update(text: str) -> str:
    if text not in UPDATE_CHOICES:
        message = f"expected one of {', '.join(UPDATE_CHOICES)}, found {text!r}"
        if "/" in text or "." in text or "::" in text:
            # A bare option takes the word after it, which was meant as a test.
            message += f"; did you mean --ttnn-perf-update=improved {text}"
        raise argparse.ArgumentTypeError(message)
    return text


def _at_least(bound: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not text.isdecimal() or int(text) < bound:
            message = f"expected a whole number of at least {bound}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return whole_number
