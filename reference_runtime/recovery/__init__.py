"""Recovery decisions as tables of data.

Every module here holds module-level constants and the pure functions that look into them. None of them does I/O,
reads a clock or draws a random number by itself.
"""
