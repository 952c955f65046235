"""Which ops changed between two captures, by how much and why."""
