"""One module per analysis: the numbers behind the rules."""
