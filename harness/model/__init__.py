"""Frozen data without I/O: scenario, event, history, outcome, evidence."""
