"""TLS certificates that are wrong in one way each, made when they are needed. They never leave the process's memory
but for the moment in which OpenSSL reads them from a private temporary file.

All but the self-signed one are signed by an authority of the provider's own, so that a client that trusts this
authority can complain of nothing but the one thing that is wrong.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)
_LOOPBACK_NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)
_OTHER_NAMES: tuple[x509.GeneralName, ...] = (x509.DNSName("somewhere-else.example"),)


@dataclass(frozen=True, slots=True)
class Certified:
    """A server's TLS settings, and the authority a client has to trust, in PEM."""

    context: ssl.SSLContext
    authority_pem: bytes


def certified(kind: str, now: dt.datetime) -> Certified:
    """Make a certificate of a kind of ``listen.CERTIFICATES`` and the settings to serve it.

    Args:
        kind: A word of ``listen.CERTIFICATES``.
        now: The time that decides what is expired; it knows its zone.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("crashcart scripted authority")
    authority = (
        _builder(authority_name, authority_name, authority_key, now - _DAY, now + 30 * _DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    until = now - _DAY if kind == "expired" else now + 30 * _DAY
    names = _OTHER_NAMES if kind == "wrong_host" else _LOOPBACK_NAMES
    itself = kind == "self_signed"
    subject = _name("crashcart scripted provider")
    signer = key if itself else authority_key
    certificate = (
        _builder(subject, subject if itself else authority_name, key, now - 2 * _DAY, until)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(authority=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    return Certified(_context(pem), authority.public_bytes(serialization.Encoding.PEM))


def _context(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory(prefix="crashcart-tls-") as folder:
        path = Path(folder) / "provider.pem"
        path.write_bytes(pem)
        context.load_cert_chain(path)
    return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    since: dt.datetime,
    until: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )
