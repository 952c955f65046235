"""``ttnn-perf baseline refresh --from-history``: recorded runs of a branch become baselines."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.baseline_edits import (
    Edits,
    Refusal,
    TestEdit,
    edited_settings,
    file_edits,
    metric_edits,
    repeated_options,
    select_tests,
    show_then_write,
)
from pytest_ttnn_perf.cli.history import wanted_history
from pytest_ttnn_perf.history.refresh import Refresh
from pytest_ttnn_perf.run.update import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.history.refresh import Refreshed, Window
    from pytest_ttnn_perf.records.baseline import TestBaseline
    from pytest_ttnn_perf.records.hardware import Hardware
    from pytest_ttnn_perf.report.numbers import Result


def run(options: Namespace) -> Result:
    """Show what the last runs make of the baselines, and change these.

    Raises:
        UsageError: there are no records, or no such test or branch among them.
        InputError: none of the records can be read, or a baseline cannot.
    """
    unknown = [word for word in options.rest if word.startswith("-")]
    if unknown:
        message = f"unrecognized arguments: {' '.join(unknown)}"
        raise UsageError(message)
    settings = edited_settings(options)
    store = BaselineStore(settings.baselines)
    # Whether something changed within the last runs shows beside those before.
    history = wanted_history(Namespace(**{**vars(options), "last": None}))
    again = repeated_options(options)
    refresh = Refresh(history, store, settings, last=options.last, options=again)
    windows = list(refresh.windows())
    tests = list(dict.fromkeys(window.test for window in windows))
    where = f"the {counted(len(history.runs), 'run')} of {options.branch or 'the main branch'}"
    named = select_tests(tests, [*options.tests, *options.rest], options.ids, where=where)
    chosen = [window for window in windows if window.test in named]
    refreshing = _Refreshing(refresh, chosen, options.reason, options.branch)
    edits = replace(refreshing.edits(), remarks=(*refreshing.remarks, *history.notes))
    return show_then_write(edits, options, refreshing.write, failed=bool(edits.refusals))


class _Refreshing:
    """Goes through the tests that were asked for."""

    def __init__(
        self, refresh: Refresh, windows: Sequence[Window], reason: str | None, branch: str | None
    ) -> None:
        self._refresh, self.remarks = refresh, list[str]()
        self._refusals: list[Refusal] = []
        self._changes: dict[Hardware, dict[str, Refreshed]] = {}
        again = 0
        for window in windows:
            obstacle = refresh.obstacle(window)
            if obstacle is not None:
                key = window.hardware.key
                self._refusals.append(Refusal(key, window.test, *obstacle))
                continue
            change = refresh.change(window, reason or _reason(window, branch))
            stored = refresh.store.find(window.hardware, window.test)
            if stored is not None and change(stored).metrics == stored.metrics:
                again += 1
            else:
                self._changes.setdefault(window.hardware, {})[window.test] = change
        if again:
            self.remarks.append(f"{counted(again, 'test')} as in these runs already")

    def edits(self) -> Edits:
        """Return what is going to be written."""
        tests, after = [], []
        store = self._refresh.store
        for hardware, changes in self._changes.items():
            then: dict[str, TestBaseline | None] = {}
            for test, change in changes.items():
                before = store.find(hardware, test)
                then[test] = change(before)
                what = {
                    name: _word(name, change, before)
                    for name, action in change.change.actions.items()
                    if action is not Action.KEEP
                }
                tests.append(TestEdit(hardware.key, test, metric_edits(before, then[test], what)))
            after.append((hardware, then))
        files = file_edits(store, after, cwd=Path.cwd())
        return Edits(tuple(tests), files, tuple(self._refusals))

    def write(self) -> tuple[str, ...]:
        """Write it: all of it, or nothing."""
        self._refresh.store.amend_keys(self._changes)
        return ()


def _word(name: str, change: Refreshed, before: TestBaseline | None) -> str:
    if before is None or name not in before.metrics:
        return "recorded"
    return "accepted" if name in change.gained else "refreshed"


def _reason(window: Window, branch: str | None) -> str:
    """Say where the numbers are from, in the place of somebody's reason."""
    first, last = window.runs[0].run, window.newest.run
    of_branch = f" of {branch}" if branch else ""
    runs = counted(len(window.runs), "run")
    return f"refreshed from {runs}{of_branch}, {first.day} to {last.day}"
