"""Captures, ops and the checklist: needs no test and no pytest."""
