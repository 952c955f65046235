"""Telling which modules a worker has loaded that are not of the version it is to measure."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.model.message import Strayed
from pytest_ttnn_perf.workflow.origins import strays

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.assignment import Apart
    from pytest_ttnn_perf.workflow.link import Link


@dataclass(eq=False)
class Origins:
    """Looks at what was loaded: before any test runs, and again for what tests have loaded."""

    link: Link
    apart: Apart

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Tell what test files load, before anything is measured."""
        stop = self._tell(session)
        if stop is not None:
            session.shouldstop = stop

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell what tests have loaded while they ran."""
        self._tell(session)

    def _tell(self, session: pytest.Session) -> str | None:
        ours = (self.link.assignment.folder,)
        here = session.config.invocation_params.dir
        found = strays(dict(sys.modules), self.apart, here=here, ours=ours)
        return self.link.say(Strayed([list(each) for each in found])) if found else None
