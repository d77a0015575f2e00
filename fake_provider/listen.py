"""How a script's provider listens: data read from ``listen:``. It opens nothing."""

from __future__ import annotations

from dataclasses import dataclass

from fake_provider.certificates import CERTIFICATES
from fake_provider.document import Node


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
