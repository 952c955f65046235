"""Records that several rooms share."""
