"""The provider's signatures over a model's reasoning: what they bind, and how a returned one is read.

A signature is a MAC over the model that thought, the place of the block among the reply's reasoning blocks, and a
digest of the text. It carries these facts itself, so that a changed text under a genuine signature and a signature that
was never issued are two different findings. Its length is always ``SIGNATURE_CHARACTERS``. It hides nothing and
protects nothing: the key is a constant of this file, because the same script has to give the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

SIGNATURE_CHARACTERS = 80

_KEY = b"crashcart scripted provider"
_MODEL_BYTES = 8
_ORDINAL_BYTES = 4
_CONTENT_BYTES = 16
_MAC_BYTES = 32
_FACTS_BYTES = _MODEL_BYTES + _ORDINAL_BYTES + _CONTENT_BYTES


@dataclass(frozen=True, slots=True)
class Signed:
    """What a genuine signature says.

    Attributes:
        model: A digest of the model's name.
        ordinal: The block's place among the reasoning blocks of its reply, from 0.
        content: A digest of what was signed.
    """

    model: bytes
    ordinal: int
    content: bytes

    def covers(self, content: str) -> bool:
        """Whether this is what was signed."""
        return self.content == _digest(content, _CONTENT_BYTES)


def sign(model: str, ordinal: int, content: str) -> str:
    """Return the signature in base64, always ``SIGNATURE_CHARACTERS`` long."""
    facts = _digest(model, _MODEL_BYTES) + ordinal.to_bytes(_ORDINAL_BYTES) + _digest(content, _CONTENT_BYTES)
    return base64.b64encode(facts + _mac(facts)).decode("ascii")


def read_signature(text: str) -> Signed | None:
    """Return what a signature says, or nothing where this provider never issued it."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    facts, mac = raw[:_FACTS_BYTES], raw[_FACTS_BYTES:]
    if len(mac) != _MAC_BYTES or not hmac.compare_digest(mac, _mac(facts)):
        return None
    ordinal = int.from_bytes(facts[_MODEL_BYTES : _MODEL_BYTES + _ORDINAL_BYTES])
    return Signed(facts[:_MODEL_BYTES], ordinal, facts[_MODEL_BYTES + _ORDINAL_BYTES :])


def _digest(text: str, size: int) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]


def _mac(facts: bytes) -> bytes:
    return hmac.new(_KEY, facts, hashlib.sha256).digest()
