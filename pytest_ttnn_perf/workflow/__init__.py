"""The only place where parts meet: measure, judge, accept, publish."""
