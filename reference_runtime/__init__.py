"""An agent runtime that keeps the recovery contract; a separate program that nobody imports."""
