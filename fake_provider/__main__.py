"""``python -m fake_provider``: the provider without the harness; ``fake_provider.command_line`` says what it does."""

from __future__ import annotations

import sys

from fake_provider.command_line import main

if __name__ == "__main__":
    sys.exit(main())
