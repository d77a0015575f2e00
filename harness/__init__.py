"""Drives a runtime under test from outside and judges what happened."""
