"""How a script's provider listens: data read from ``listen:``. It opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fake_provider.document import Node

CERTIFICATES: Mapping[str, str] = {
    "valid": "signed by the provider's authority, for localhost and the loopback addresses",
    "self_signed": "signed by nobody but itself",
    "expired": "as valid, but its time is over since a day",
    "wrong_host": "as valid, but for another host",
}
"""Every certificate that ``listen: {tls: …}`` can name."""


@dataclass(frozen=True, slots=True)
class Listen:
    """The settings; ``tls`` is a word of ``CERTIFICATES``, or nothing for plain HTTP."""

    tls: str | None = None

    @classmethod
    def read(cls, node: Node) -> Listen:
        """Read ``{tls: self_signed}``.

        Raises:
            DocumentError: A key or the certificate is unknown.
        """
        fields = node.fields("listen", ("tls",))
        return cls(fields["tls"].choice("certificate", CERTIFICATES) if "tls" in fields else None)
