"""The rules that look at captures, one module per family."""
