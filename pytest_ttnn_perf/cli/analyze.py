"""``ttnn-perf analyze [WHAT] FILE``: how time, bytes and tensors are distributed."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import did_you_mean
from pytest_ttnn_perf.analysis.checklist.analyses import ANALYSES, capture_notes
from pytest_ttnn_perf.analysis.checklist.runner import in_regions, trusted
from pytest_ttnn_perf.analysis.ops.regions import slowest_step_of
from pytest_ttnn_perf.cli.artifacts import captures_of, complaining, joined, look_at
from pytest_ttnn_perf.records.finding import Input
from pytest_ttnn_perf.report.analysis import analysis_listing, overview_listing
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ttnn_perf.cli.artifacts import Capture
    from pytest_ttnn_perf.records.finding import Analysis, Subject
    from pytest_ttnn_perf.report.numbers import Listing


def run(options: argparse.Namespace) -> Result:
    """Return one analysis of captures, or an overview of all; what cannot be told is no failure.

    Raises:
        InputError: a file is not what it should be.
        UsageError: nothing to look at, or an analysis or a window that does not exist.
    """
    name, files = _name_and_files(options.what, options.files)
    captures = captures_of(options, files)
    found, errors = look_at(captures, lambda capture: _listing(capture, name, options))
    if not found:
        return complaining(Result(""), errors)
    listing = joined(found, several=len(captures) > 1)
    return complaining(Result(listing.text(options.format)), errors)


def _listing(capture: Capture, name: str | None, options: argparse.Namespace) -> Listing:
    subject = capture.read(options)
    if name is not None:
        return analysis_listing(_analyses_of(subject, name))
    chosen = {"--region": options.region, "--start": options.start, "--end": options.end}
    window = [word for option, value in chosen.items() if value for word in (option, value)]
    notes = () if subject.ops is None else tuple(capture_notes(subject.ops))
    more = f"ttnn-perf analyze NAME {shlex.join([*capture.files, *window])}"
    return overview_listing(
        (each for one in ANALYSES for each in _analyses_of(subject, one)), notes, more
    )


def _name_and_files(word: str | None, files: Sequence[str]) -> tuple[str | None, list[str]]:
    """Tell the name of an analysis from a file; a file of such a name needs its folder, as ./l1."""
    late = next((file for file in files if file in ANALYSES and not Path(file).exists()), None)
    if late is not None:
        message = f"name one analysis, before the files: ttnn-perf analyze {late} FILE"
        raise UsageError(message)
    if word is None or word in ANALYSES:
        return word, [*files]
    # What has no suffix and is in no folder, and is not there either, was meant as a name.
    if Path(word).exists() or Path(word).name != word or Path(word).suffix:
        return None, [word, *files]
    near = did_you_mean(word, ANALYSES)
    message = f"{word}: there is no such analysis, and no such file"
    raise UsageError(message + (near or f"; analyses: {', '.join(ANALYSES)}"))


#: Analyses that look at several steps, or at devices side by side.
_OF_ALL_STEPS: Final = frozenset({"devices", "host-overhead", "trace", "queues", "mesh", "overlap"})


def _analyses_of(subject: Subject, name: str) -> list[tuple[str, Analysis]]:
    """Return an analysis of each region; what does not look at ops is made once, of no region.

    Most are of one step alone, on its slowest device.
    """
    kind, found = ANALYSES[name], []
    for each in in_regions(subject) if Input.OPS in kind.needs else (trusted(subject),):
        own = each
        if each.ops is not None and each.ops.devices and name not in _OF_ALL_STEPS:
            own = replace(each, ops=slowest_step_of(each.ops))
        found.append((each.region, kind.analysis(own)))
    return found
