"""One line a request, printed when it is over: for a file, a pipe, or someone who wants no live view."""

from __future__ import annotations

from fake_provider.request_rows import Row


def print_row(row: Row) -> None:
    """Print the lane and step, the status, and what was unusual."""
    print("  ".join([f"#{row.request}", row.who, row.shown_status, *row.remarks]), flush=True)


def print_remark(sentence: str) -> None:
    """Print what happened on a connection that brought no request."""
    print(sentence, flush=True)
