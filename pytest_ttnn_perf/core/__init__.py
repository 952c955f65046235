"""The vocabulary that all rooms share: records, their JSON, settings, files, text."""
