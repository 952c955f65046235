"""A session that only collects, for ``ttnn-perf baseline prune --collect``: writes what it found.

Loaded with ``-p`` by that command alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_ttnn_perf.plugin.reports import TestCollection
from pytest_ttnn_perf.records.observation import Coverage

_COLLECTION = pytest.StashKey[TestCollection]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep book of what is collected."""
    collection = config.stash[_COLLECTION] = TestCollection(config)
    config.pluginmanager.register(collection, "ttnn_perf_collecting")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write it."""
    from pytest_ttnn_perf.records.json import encode
    from pytest_ttnn_perf.run.health import COLLECTED

    tests = [item.nodeid for item in session.items]
    found = session.config.stash[_COLLECTION].coverage(tests)
    document = encode(found or Coverage(()))
    Path(os.environ[COLLECTED]).write_text(json.dumps(document), encoding="utf-8")
