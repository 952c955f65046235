"""One page for a browser, which needs nothing beside it: what it shows, and how it is written."""
