"""Streams of bytes to a connection: good requests, damaged ones, and anything, cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.bodies import HEADERS, PATHS, SIDE_PATHS, VALID

HOT: Mapping[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
METHODS = ("GET", "HEAD", "OPTIONS", "DELETE", "CONNECT", "TRACE", "PUT", "get")
HEADER_LINES = (
    "connection: close",
    "connection: keep-alive",
    "expect: 100-continue",
    "transfer-encoding: chunked",
    "content-length: 0",
    "content-length: 7",
    "upgrade: h2c",
    "accept-encoding: gzip",
    "x: \xff",
    "x",
    " folded",
    "host: other",
)
FRAGMENTS = (
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b":",
    b"0\r\n\r\n",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"{",
    b'"',
)


def request(
    method: str, target: str, headers: Mapping[str, str], body: bytes, *extra: str, version: str = "1.1"
) -> bytes:
    """Encode a request with a length, and with lines that need not fit it."""
    lines = [f"{method} {target} HTTP/{version}", "host: p", *(f"{name}: {value}" for name, value in headers.items())]
    lines += [f"content-length: {len(body)}"] if body else []
    return "\r\n".join([*lines, *extra]).encode("latin-1") + b"\r\n\r\n" + body


def in_chunks(data: bytes, size: int) -> bytes:
    """Encode a body in chunks of a size."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


HOT_REQUEST = request("POST", "/v1/messages", HEADERS["anthropic_messages"], json.dumps(HOT).encode())


def _model_requests() -> list[bytes]:
    """Requests for the model in every dialect: streamed and not, in chunks and with each of the header lines."""
    made = []
    for name, body in VALID.items():
        for target in PATHS[name]:
            for whole in (body, {**body, "stream": False}, {**body, "model": 7, "contents": 7}):
                data = json.dumps(whole).encode()
                made += [request("POST", target, HEADERS[name], data, version=version) for version in ("1.1", "1.0")]
                chunked = request("POST", target, HEADERS[name], b"", "transfer-encoding: chunked")
                made += [chunked + in_chunks(data, size) for size in (7, 100_000)]
        made += [
            request("POST", PATHS[name][0], HEADERS[name], json.dumps(body).encode(), line) for line in HEADER_LINES
        ]
        made.append(request("POST", PATHS[name][0], {}, json.dumps(body).encode()))
    return made


def _side_requests() -> list[bytes]:
    """Requests beside the model, with every verb, with a body and without."""
    return [
        request(method, path, HEADERS[name], body)
        for name in VALID
        for method in (*METHODS, "POST")
        for path in SIDE_PATHS
        for body in (b"", json.dumps(HOT).encode())
    ]


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with some of them replaced, removed, doubled or added."""
    mutable = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(mutable)))
        end = start + draw(st.integers(0, 8))
        kept = bytes(mutable[start:end])
        mutable[start:end] = draw(st.sampled_from([b"", kept * 2, *FRAGMENTS]) | st.binary(max_size=4))
    return bytes(mutable)


GOOD = st.one_of(st.just(HOT_REQUEST), st.sampled_from(_model_requests()), st.sampled_from(_side_requests()))
ITEMS = st.one_of(GOOD, GOOD, GOOD.flatmap(changed), st.binary(max_size=30), st.sampled_from(FRAGMENTS))


@st.composite
def pieces(draw: st.DrawFn, items: st.SearchStrategy[bytes] = ITEMS) -> list[bytes]:
    """Some items on one connection: each a piece, or all of them cut anywhere."""
    sent = draw(st.lists(items, min_size=1, max_size=5))
    if draw(st.booleans()):
        return [item for item in sent if item]
    whole = b"".join(sent)
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(whole) - 1)), max_size=8)))
    return [piece for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) if (piece := whole[start:end])]
