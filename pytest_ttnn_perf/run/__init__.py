"""The orchestrator's side of one gated run."""
