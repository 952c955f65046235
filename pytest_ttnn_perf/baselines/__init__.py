"""The stored baselines: where they lie, what they look like, and how they are changed safely."""
