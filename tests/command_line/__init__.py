"""Tests of the command line, by real processes."""
