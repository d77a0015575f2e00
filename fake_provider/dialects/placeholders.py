"""What an error's text repeats of the request it answers. Pure: text in, text out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fake_provider.dialects import Served

_PLACEHOLDER = re.compile(r"\{(model|tokens|window_tokens)\}")


def filled(message: str, served: Served, *, verbatim: bool = False) -> str:
    """Return a message with ``{model}``, ``{tokens}`` and ``{window_tokens}`` filled in, each once.

    What is filled in is not looked at again: a client may ask for a model called ``{tokens}``. A ``verbatim`` message
    is returned as it is.
    """
    if verbatim:
        return message
    values = {
        "model": served.model,
        # A scripted "too long" for a short request still has to say a number above the window.
        "tokens": str(max(served.input_tokens, served.window_tokens + 1)),
        "window_tokens": str(served.window_tokens),
    }
    return _PLACEHOLDER.sub(lambda found: values[found.group(1)], message)
