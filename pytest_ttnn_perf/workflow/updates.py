"""The changes to baselines that a run has decided on, until they are written at its end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.baselines.paths import split_test_id
from pytest_ttnn_perf.model.settings import Update
from pytest_ttnn_perf.workflow.accept import Change, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.baseline import Accepted
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import JudgedTest


@dataclass(frozen=True, slots=True)
class NotWritten:
    """A baseline file that could not be changed, and the tests this concerns."""

    error: str
    tests: tuple[str, ...]


@dataclass(slots=True)
class Updates:
    """What will be written, by hardware and test file; nothing without an ``update``."""

    store: BaselineStore
    update: Update | None
    _changes: dict[tuple[Hardware, str], dict[str, Change]] = field(default_factory=dict)

    def decide(
        self, judged: JudgedTest, *, hardware: Hardware, accepted: Callable[[], Accepted]
    ) -> JudgedTest:
        """Return a judged test with the metrics of it that will be written."""
        if self.update is None:
            return judged
        test = judged.observation.test
        self.withdraw(test)  # a test that is run again counts once, as it ended
        change = plan(judged, self.update, accepted=accepted())
        if change is None:
            return judged
        self.add(judged.observation.hardware or hardware, test, change)
        return replace(judged, written=change.metrics)

    def add(self, hardware: Hardware, test: str, change: Change) -> None:
        """Write a change of a test, with those of the same file."""
        self._changes.setdefault((hardware, split_test_id(test)[0]), {})[test] = change

    def only_new(self) -> None:
        """Write nothing from now on but what has no baseline; what was decided is forgotten."""
        self._changes.clear()
        self.update = self.update and Update.NEW

    def withdraw(self, test: str) -> bool:
        """Forget a test's change; return whether there was one."""
        return any(changes.pop(test, None) for changes in self._changes.values())

    def write(self, written: list[Path]) -> Iterator[NotWritten]:
        """Change the files one by one, adding them to ``written``; yield those that refuse.

        One file that cannot be written does not cost the others theirs.
        """
        for (hardware, _), changes in self._changes.items():
            if changes:
                try:
                    written += self.store.amend(hardware, changes)
                except TtnnPerfError as error:
                    yield NotWritten(str(error), tuple(changes))
