"""A session that only collects, for ``ttnn-perf baseline prune --collect``: writes what it found.

Loaded with ``-p`` by that command alone.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf.records.observation import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: Options that select tests, or with which some files are not even looked at, by their names in
#: pytest's namespace. Marks do not: a job that runs what is marked runs all that it is there for.
_PARTIAL: Final = ("keyword", "lf", "ignore", "ignore_glob", "pyargs")


@dataclass(eq=False)
class Gathering:
    """Keeps book of a collection, wherever it takes place: workers' hooks are called here too."""

    config: pytest.Config
    _apart: list[str] = field(default_factory=list)
    _deselected: list[str] = field(default_factory=list)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep what was deselected: it is there all the same."""
        self._deselected += [getattr(item, "nodeid", str(item)) for item in items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected, or was skipped as a whole: its tests may be there."""
        if not report.passed:
            self._apart.append(report.nodeid)

    def coverage(self, tests: Iterable[str]) -> Coverage | None:
        """Return what was collected, with ``tests`` to run; None if it was a selection of files."""
        option = self.config.option
        if any(getattr(option, name, None) for name in _PARTIAL):
            return None
        found = (_place(argument, self.config) for argument in self.config.args)
        places = tuple(place for place in found if place is not None)
        if not places:
            return None
        unasked = tuple(self._deselected)
        return Coverage(places, (*tests, *unasked, *self._apart), unasked)


def _place(argument: str, config: pytest.Config) -> str | None:
    """Return where the tests of an argument lie, from the root; None if it is not all of a file."""
    if "::" in argument:
        return None
    place = os.path.relpath(config.invocation_params.dir / argument, config.rootpath)
    if place.startswith(".."):
        return None
    return "" if place == "." else place.replace(os.sep, "/")


_GATHERING = pytest.StashKey[Gathering]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep book of what is collected."""
    gathering = config.stash[_GATHERING] = Gathering(config)
    config.pluginmanager.register(gathering, "ttnn_perf_collecting")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write it."""
    from pytest_ttnn_perf.records.json import encode
    from pytest_ttnn_perf.run.collection import COLLECTED

    tests = [item.nodeid for item in session.items]
    found = session.config.stash[_GATHERING].coverage(tests)
    document = encode(found or Coverage(()))
    Path(os.environ[COLLECTED]).write_text(json.dumps(document), encoding="utf-8")
