"""Claude Code as a runtime under test."""
