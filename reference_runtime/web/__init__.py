"""Pages of the reference runtime's own server."""
