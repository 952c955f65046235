"""The worker's side: the fixture, its measurements, one observation per test."""
