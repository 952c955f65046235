"""The contract that outlives every rebuilding: outputs, what the tests catch, differences."""
