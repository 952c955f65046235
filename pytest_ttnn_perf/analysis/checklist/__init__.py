"""The optimization checklist: rules over what is known of a test."""
