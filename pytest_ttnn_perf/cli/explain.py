"""``ttnn-perf explain WHAT``: what is known of a rule, a test of the last run, or a file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind, read_run
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.artifacts import newest_record
from pytest_ttnn_perf.cli.baseline_edits import select_tests
from pytest_ttnn_perf.cli.gate import Gated
from pytest_ttnn_perf.cli.show import presumed_kind_of
from pytest_ttnn_perf.cli.status import gate_here
from pytest_ttnn_perf.records.finding import RuleOutcome, Severity
from pytest_ttnn_perf.report.checklist import VALIDITY
from pytest_ttnn_perf.report.numbers import Result, json_text
from pytest_ttnn_perf.report.sentences import place_of
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.numbers import Listing


#: What files of profilers and records end with: no test is called so.
_CAPTURES: Final = frozenset({".csv", ".gz", ".json", ".log", ".sqlite", ".txt"})


def run(options: argparse.Namespace) -> Result:
    """Return what is known; the exit code says nothing of a verdict.

    Raises:
        InputError: a file is malformed.
        UsageError: there is nothing of this name.
    """
    what, shape = options.what, options.format
    file = Path(what)
    if not _exists(file):
        if file.suffix in _CAPTURES and "::" not in what:
            message = f"{what}: there is no such file"
            raise UsageError(message)
        if _is_test(what):
            return Result(_of_last_run(what).text(shape))
        try:
            return _command("rules", what, shape)
        except UsageError as error:
            if str(error).endswith("?"):  # a rule that is near is what was meant
                raise
            message = f"{error}; a test is named by its id, such as test_model.py::test_x"
            raise UsageError(message) from error
    if file.suffix == ".json" and file.parent.name == "steps":
        message = f"{what} is the record of a step: ttnn-perf journal shows it beside the others"
        raise UsageError(message)
    if not file.is_dir() and presumed_kind_of(file) is ArtifactKind.RUN_RECORD:
        return Result(_judged(file, ()).text(shape))
    checked = replace(_command("check", place_of(what), shape), failed=False)
    if shape != "json" or not checked.text:
        return checked
    return replace(checked, text=json_text(_found_first(json.loads(checked.text))))


def _found_first(document: dict[str, Any]) -> dict[str, Any]:
    """Return what the checklist found of a capture, the most worth first; the rest is counted.

    Its own order is that of the rules: a reader who sees the beginning alone would see nothing.
    """
    rules = document.pop("rules", [])
    found = [each for each in rules if each["outcome"] == RuleOutcome.FOUND.value]
    others = Counter(each["outcome"] for each in rules if each not in found)
    found.sort(key=_worth)
    told = [
        {name: value for name, value in each.items() if value not in (None, "", [], False)}
        for each in found
    ]
    return {"found": told, "others": dict(sorted(others.items())), **document}


def _worth(finding: dict[str, Any]) -> tuple[object, ...]:
    """Return what sorts findings as a table has them: doubts first, upper bounds late."""
    saving_ns = finding["saving_ns"]
    return (
        not finding["code"].startswith(VALIDITY),
        finding["severity"] != Severity.ERROR.value,
        saving_ns is None,
        finding["at_most"],
        -(saving_ns or 0.0),
        finding["code"],
    )


def _exists(file: Path) -> bool:
    try:
        return file.suffix != ".py" and file.exists()
    except OSError:  # no name that a file could have
        return False


def _is_test(what: str) -> bool:
    """Tell the id, file or folder of a test, or a pattern, from the code or name of a rule."""
    return any(mark in what for mark in ("::", ".py", "/", "*"))


def _command(name: str, word: str, shape: str) -> Result:
    """Return what another command says."""
    from importlib import import_module

    from pytest_ttnn_perf.cli.main import parse

    module = import_module(f"pytest_ttnn_perf.cli.{name}")
    result: Result = module.run(parse([name, "--format", shape, "--", word]))
    return result


def _of_last_run(test: str) -> Listing:
    record = newest_record(project_settings())
    if record is None:
        message = f"{test}: no run is recorded here: make one with pytest --ttnn-perf"
        raise UsageError(message)
    return _judged(record, (test,))


def _judged(record: Path, tests: Sequence[str]) -> Listing:
    """Lay out what the gate says of tests of a record, all without any, as baselines are now."""
    settings = project_settings()
    store = BaselineStore(settings.baselines)
    gated = gate_here(settings).judge(read_run(record), store, records=[record])
    told = gated.summary_options
    named = select_tests(gated.run.tests, tests, where=str(record))
    names = sorted(named, key=lambda name: name not in told.failed)  # what fails comes first
    shown = replace(
        told,
        failed=told.failed & frozenset(names),
        verbosity=1,
        progress=tuple(each for each in told.progress if each[0] in names),
    )
    run = replace(gated.run, tests={name: gated.run.tests[name] for name in names})
    return Gated(run, shown).listing()
