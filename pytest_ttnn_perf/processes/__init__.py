"""Child processes: starting one, hearing it, and never leaving one behind."""
