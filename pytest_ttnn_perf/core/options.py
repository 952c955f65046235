"""The table of all settings, and the files that they stand in.

Every pytest run loads this module, so the table is plain tuples, and nothing is imported for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path


#: Name, kind, choices or the word for the value in ``--help``, and help: a phrase without full
#: stop. ``update`` is ``--ttnn-perf-update`` on the command line. ``Settings`` has a
#: field of the same name with the type and the default, and those that only a file has.
OPTIONS: Final = (
    ("enabled", "flag", "", "Turn the performance gate on"),
    ("all", "flag", "", "Measure every collected test"),
    ("baselines", "path", "DIR", "Where baselines live (default: baselines)"),
    (
        "update",
        "choice, bare",
        ("new", "improved", "all"),
        "Write results into the baselines: new, improved (when bare) or all",
    ),
    ("reason", "text", "TEXT", "Why a result is accepted, stored with it"),
    (
        "missing",
        "choice",
        ("fail", "warn", "ignore"),
        "What a test without a comparable baseline does (default: fail)",
    ),
    (
        "isolate",
        "choice",
        ("auto", "process", "inline"),
        "Run tests in worker processes, or inline for debugging (default: auto = process)",
    ),
    (
        "confirm",
        "number from 0, or ab",
        "N",
        "Times a suspect is measured again in a fresh process before it fails (default: 4); ab: "
        "what stays in doubt is measured alternately with its baseline's commit",
    ),
    (
        "timeout",
        "number from 0",
        "SECONDS",
        "Kill a worker that is silent for this long; 0 = never (default: 3600)",
    ),
    (
        "warmup",
        "number from 0",
        "N",
        "Untimed calls before the samples, for tests that do not set it (default: 3)",
    ),
    ("iterations", "number from 1", "N", "Timed calls, for tests that do not set it (default: 10)"),
    (
        "profiler",
        "choice",
        ("auto", "off", "realtime", "device", "tracy", "ttlang"),
        "Where device times come from (default: auto, what this ttnn and machine can do)",
    ),
    (
        "passes",
        "choice",
        ("both", "wall", "device"),
        "Leave out the wall or the device pass (default: both)",
    ),
    (
        "reset",
        "text",
        "CMD",
        "Run CMD after a worker with a device hung or died, such as 'tt-smi -r'",
    ),
    (
        "checklist",
        "choice",
        ("enforce", "report", "off"),
        "Whether errors of the checklist fail a test (default: enforce)",
    ),
    ("select", "codes", "CODES", "Ask only these rules, or prefixes: TTP6,TTP203"),
    ("ignore", "codes", "CODES", "Do not ask these rules, or prefixes"),
    ("json", "path", "PATH", "Write the run record to PATH"),
    ("markdown", "path", "PATH", "Write a report for reviewers to PATH"),
    ("html", "path", "PATH", "Write a page for a browser to PATH"),
    ("gitlab", "path", "PATH", "Write a code quality report to PATH"),
    (
        "benchmark_json",
        "path",
        "DIR",
        "Write a CompleteBenchmarkRun JSON of each test into DIR, for dashboards",
    ),
    (
        "history",
        "database",
        "URL",
        "Also send the run to a database: sqlite:///FILE, postgresql+psycopg://... "
        "(with a password: set TTNN_PERF_HISTORY instead)",
    ),
    ("label", "text", "TEXT", "Name of this run's change"),
    ("artifacts", "path", "DIR", "Where run records are kept (default: .ttnn_perf)"),
    (
        "replay",
        "path",
        "DIR",
        "Take device metrics from artifacts recorded in DIR instead of hardware",
    ),
)
#: On the command line, each of these turns the gate on.
TURN_ON: Final = ("enabled", "all", "update", "replay")

OWN_FILE: Final = "ttnn_perf.toml"
SHARED_FILE: Final = "pyproject.toml"


def option_of(name: str) -> str:
    """Return the option of a setting.

    >>> option_of("enabled"), option_of("benchmark_json")
    ('--ttnn-perf', '--ttnn-perf-benchmark-json')
    """
    return "--ttnn-perf" if name == "enabled" else f"--ttnn-perf-{name.replace('_', '-')}"


def attribute_of(name: str) -> str:
    """Return under which name pytest keeps the value of a setting's option."""
    return "ttnn_perf" if name == "enabled" else f"ttnn_perf_{name}"


#: Far more than any file of settings has.
LARGEST_TEXT_BYTES: Final = 64 * 2**20
#: What tables of ours begin with, also misspelt ones.
_TABLES: Final = (b"tool.ttnn", b"tool.pytest-ttnn")


def files_of(folder: Path) -> list[Path]:
    """Return the configuration files of a folder, our own first."""
    own, shared = folder / OWN_FILE, folder / SHARED_FILE
    found = [own] if os.path.lexists(own) else []
    try:
        if shared.is_file() and shared.stat().st_size <= LARGEST_TEXT_BYTES:
            text = shared.read_bytes().lower()
            found += [shared] if any(table in text for table in _TABLES) else []
    except OSError:
        pass  # pytest reads it too
    return found
