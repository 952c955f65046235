"""The worker's side: what a test does through its fixture becomes one observation."""
