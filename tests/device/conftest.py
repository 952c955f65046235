"""Nothing in the stand-in is a test; child processes find it."""

from __future__ import annotations

collect_ignore = ["fake"]
