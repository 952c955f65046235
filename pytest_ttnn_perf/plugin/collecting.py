"""A session that only collects, for ``ttnn-perf baseline prune --collect``.

Loaded with ``-p`` by that command alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_ttnn_perf.core.observation import Coverage
from pytest_ttnn_perf.plugin.emit import TestCollection
from pytest_ttnn_perf.plugin.identity import identities_of
from pytest_ttnn_perf.plugin.settings import settings_of

_COLLECTION = pytest.StashKey[TestCollection]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep track of the collection."""
    collection = config.stash[_COLLECTION] = TestCollection(config)
    config.pluginmanager.register(collection, "ttnn_perf_collecting")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write it."""
    from pytest_ttnn_perf.core.codec import encode
    from pytest_ttnn_perf.gate.health import COLLECTED

    collection, items = session.config.stash[_COLLECTION], session.items
    identities = identities_of(items, settings_of(session.config)) | collection.identities
    found = collection.coverage(item.nodeid for item in items) or Coverage(())
    document = encode(found.with_identities(identities))
    Path(os.environ[COLLECTED]).write_text(json.dumps(document), encoding="utf-8")
