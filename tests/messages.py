"""Error messages, checked by what they must contain, not word by word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def says(message: object, *parts: str) -> str:
    """Check that a message is one sentence which contains all parts; return it."""
    sentence = str(message)
    assert sentence.endswith("."), sentence
    assert "\n" not in sentence, sentence
    missing = [part for part in parts if part not in sentence]
    assert not missing, f"{sentence!r} does not say {missing}"
    return sentence


@contextmanager
def refused(
    error: type[Exception] | tuple[type[Exception], ...], *parts: str
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error whose message says all parts."""
    with pytest.raises(error) as caught:
        yield caught
    says(caught.value, *parts)
