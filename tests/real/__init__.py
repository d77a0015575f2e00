"""Tests that need a real agent."""
