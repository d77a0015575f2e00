"""Recovery decisions as tables; no I/O."""
