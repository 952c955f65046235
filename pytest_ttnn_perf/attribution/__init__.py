"""Aligns two op tables and says which ops changed, by how much, and why. Pure."""
