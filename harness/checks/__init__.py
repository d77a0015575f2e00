"""Pure functions from a history to an outcome."""
