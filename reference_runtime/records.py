"""What a durable record has to hold before anything is made of it, kind by kind (J4).

Damage may leave a line that is JSON and is still no record. This module says what such a record lacks; what is done
about it is known elsewhere, and nothing here changes a record.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from reference_runtime.recovery.receipts import Effect, ReceiptRecord
from reference_runtime.transcript import Record

Fits = Callable[[Any], bool]


def misfit(record: Record) -> str | None:
    """Why a record cannot be used, or None; a kind that this version does not know is left alone."""
    for name, fits in _FIELDS.get(record.kind, {}).items():
        if name not in record.fields:
            return f"{record.kind} record without what it needs: {name!r}"
        if not fits(record.fields[name]):
            return f"{record.kind} record with a {name!r} that is none"
    for name, fits in _OPTIONAL_FIELDS.get(record.kind, {}).items():
        if name in record.fields and not fits(record.fields[name]):
            return f"{record.kind} record with a {name!r} that is none"
    if record.kind in _ATTEMPT_KINDS and "content" in record.fields and "is_error" not in record.fields:
        return f"{record.kind} record with a result of which nobody can say whether it is an error"
    return None


def _is(*types: type) -> Fits:
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _list_of(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list) and all(fits(item) for item in value)


def _one_of(*words: str) -> Fits:
    return lambda value: isinstance(value, str) and value in words


def _sendable(value: object) -> bool:
    """Whether UTF-8, and so every provider, can carry a value; JSON may hold half a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def _name(value: object) -> bool:
    return isinstance(value, str) and value != "" and _sendable(value)


def _block(value: object) -> bool:
    if not isinstance(value, dict) or not _name(value.get("type")):
        return False
    needed = _BLOCK_FIELDS.get(value["type"], {})
    return _sendable(value) and all(name in value and fits(value[name]) for name, fits in needed.items())


def _result_content(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(_block(item) for item in value))


_BLOCK_FIELDS: Mapping[str, Mapping[str, Fits]] = {
    "text": {"text": _is(str)},
    "tool_use": {"id": _name, "name": _name, "input": _is(dict)},
    "tool_result": {"tool_use_id": _name, "content": _result_content},
}

_ATTEMPT_KINDS = frozenset(ReceiptRecord)
_ATTEMPT: Mapping[str, Fits] = {"call_id": _name, "attempt_id": _name}

_FIELDS: Mapping[str, Mapping[str, Fits]] = {
    "session": {"model": _is(str), "cwd": _is(str)},
    "message": {
        "uuid": _name,
        "parent_uuid": _is(str, type(None)),
        "role": _one_of("user", "assistant"),
        "content": _list_of(_block),
        "turn": _is(int),
    },
    "tombstone": {"uuids": _list_of(_is(str))},
    "run_ended": {"terminal_reason": _is(str)},
    **dict.fromkeys(ReceiptRecord, _ATTEMPT),
    ReceiptRecord.RECEIPT: {
        **_ATTEMPT,
        "tool": _name,
        "turn": _is(int),
        "effect": _one_of(*Effect),
        "arguments": _is(dict),
        "digest": _is(str),
        "idempotency_key": _is(str),
    },
}

_OPTIONAL_FIELDS: Mapping[str, Mapping[str, Fits]] = {
    "message": {"hidden": _is(bool), "details": _is(dict)},
    **{kind: {"content": _list_of(_block), "is_error": _is(bool)} for kind in ReceiptRecord},
}
