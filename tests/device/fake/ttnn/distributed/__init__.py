"""Meshes."""

# ruff: noqa: F403

from .distributed import *
