"""A scripted model provider with control of the wire; useful by itself, and imports nothing first-party."""
