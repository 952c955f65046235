"""What every layer may use: errors, safe file writing, places in JSON text."""
