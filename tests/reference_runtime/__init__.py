"""Tests of the reference runtime."""
