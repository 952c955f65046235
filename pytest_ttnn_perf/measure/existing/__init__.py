"""Helpers of existing test suites, observed while tests call them."""
