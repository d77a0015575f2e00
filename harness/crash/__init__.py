"""Crashes at exact places."""
