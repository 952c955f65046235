"""One format per file, told by content, and the metrics of each."""
