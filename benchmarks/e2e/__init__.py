"""The parts of the end-to-end benchmark."""
