"""Of all that is run here, the examples too: only what pytest takes from no other conftest."""

from __future__ import annotations

pytest_plugins = ["pytester"]
