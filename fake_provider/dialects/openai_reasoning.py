"""Reasoning that comes back: the encrypted content that a Responses reply carries, and what a returned one is worth.

Pure. It encrypts nothing and protects nothing: the "encrypted content" is a MAC over the model, the item's id and the
text, beside the id and a digest of the model, so that a provider without a memory can tell reasoning that was changed,
emptied or moved from reasoning that came back as it left. Clients may leave out an item's ``id`` when they send it
back; the id inside is what counts. The key is a constant, because the same script has to give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass

_KEY = b"crashcart scripted provider"
_PREFIX = "gAAAAA"
_TOKEN = re.compile(_PREFIX + r"([tr])([\w-]{8})([\w-]{43})([\w-]*)(?:\.(.*))?", re.ASCII | re.DOTALL)

THOUGHT = "t"
REDACTED = "r"


@dataclass(frozen=True, slots=True)
class Sealed:
    """What an encrypted content says of itself.

    Attributes:
        kind: ``THOUGHT``, whose text is the item's summary, or ``REDACTED``, whose text is inside.
        model: A digest of the model's name.
        mac: The MAC.
        suffix: The item's id without its prefix ``rs_``.
        data: The text of redacted reasoning.
    """

    kind: str
    model: str
    mac: str
    suffix: str
    data: str

    def covers(self, summary: str) -> bool:
        """Whether it was made for this item and this text."""
        text = self.data if self.kind == REDACTED else summary
        if self.kind == REDACTED and summary:
            return False
        return hmac.compare_digest(self.mac, _mac(self.kind, self.model, self.suffix, text))

    def is_of(self, model: str) -> bool:
        """Whether this model made it."""
        return self.model == _model_digest(model)


def seal(kind: str, model: str, suffix: str, text: str) -> str:
    """Return the encrypted content of reasoning; only that of redacted reasoning is longer for a longer text."""
    digest = _model_digest(model)
    tail = f".{text}" if kind == REDACTED else ""
    return f"{_PREFIX}{kind}{digest}{_mac(kind, digest, suffix, text)}{suffix}{tail}"


def unseal(content: str) -> Sealed | None:
    """Return what an encrypted content says, or nothing where no reply of this provider can have carried it."""
    match = _TOKEN.fullmatch(content)
    if match is None:
        return None
    kind, model, mac, suffix, data = match.groups()
    return Sealed(kind, model, mac, suffix, data or "")


def excerpt(content: str) -> str:
    """Return what an error message quotes of an encrypted content."""
    return f"{content[:4]}...{content[-4:]}"


def _model_digest(model: str) -> str:
    return _text(hashlib.sha256(model.encode("utf-8", "surrogatepass")).digest()[:6])


def _mac(kind: str, model: str, suffix: str, text: str) -> str:
    return _text(hmac.new(_KEY, json.dumps([kind, model, suffix, text]).encode("ascii"), hashlib.sha256).digest())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
