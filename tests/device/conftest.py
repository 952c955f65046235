"""Nothing in the stand-in is a test, and only child processes may find it."""

collect_ignore = ["fake"]
