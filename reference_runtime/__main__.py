"""Runs the command line: `python -m reference_runtime -p PROMPT`; see `--help`."""

import sys

from reference_runtime.command_line import main

if __name__ == "__main__":
    sys.exit(main())
