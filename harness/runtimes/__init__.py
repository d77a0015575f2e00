"""Adapters, one a runtime under test."""
