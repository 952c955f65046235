"""Changes between two captures, by op."""
