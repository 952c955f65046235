"""One input format per file, each read into records of the model."""
