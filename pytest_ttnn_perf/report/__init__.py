"""Words and layouts. Nothing here computes: every number arrives in a record."""
