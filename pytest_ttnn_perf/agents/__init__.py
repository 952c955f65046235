"""What coding agents use: the commands, served over the Model Context Protocol."""
