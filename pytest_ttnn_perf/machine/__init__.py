"""The machine under test: chips, host, TTNN's installation, git, child processes."""
