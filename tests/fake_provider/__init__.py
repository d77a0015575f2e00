"""Tests of the fake provider."""
