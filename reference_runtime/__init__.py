"""An agent runtime that keeps the recovery contract; a separate program that nobody imports.

It meets the outside world at a command line, an environment, HTTP, signals and files. It never imports the fake
provider or the harness.
"""

VERSION = "0.1.0"
