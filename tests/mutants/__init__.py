"""Mutants of the reference runtime, each killed by a probe."""
