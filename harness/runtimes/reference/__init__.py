"""The reference runtime as a runtime under test."""
