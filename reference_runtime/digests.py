"""Canonical digests of tool arguments and the idempotency keys made from them. Pure; reads nothing from outside."""

import hashlib
import json
from collections.abc import Mapping


def canonical_text(arguments: Mapping[str, object]) -> str:
    """The one text of these arguments: JSON with sorted keys, no spaces, no ASCII escapes.

    Two mappings that are equal as JSON values have the same text whatever the order of their keys. Lone surrogates
    are kept as escapes, since they cannot be encoded.
    """
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def arguments_digest(arguments: Mapping[str, object]) -> str:
    """SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_text(arguments).encode()).hexdigest()


def idempotency_key(session_id: str, call_id: str, tool: str, digest: str) -> str:
    """The key by which a sink can recognise this very call again: stable over restarts, new for each call id."""
    return hashlib.sha256(f"{session_id}\x00{call_id}\x00{tool}\x00{digest}".encode()).hexdigest()[:40]
