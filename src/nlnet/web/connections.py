"""Limits of connections: their number, and the time for the head of a request.

uvicorn bounds neither. Without this, clients that send half of their headers and wait use up the
process's file descriptors, and nobody else gets in.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Time a client may take for the first line and the headers of a request."""

_RESERVED_DESCRIPTORS = 64
"""File descriptors left for everything that is no connection."""

_MOST_DESCRIPTORS = 2048
_ROUNDS = 4
"""asyncio accepts up to a whole backlog so often before a connection that is closed is gone."""

_REFUSAL = b'{"detail": "The server has as many connections as it can; try again later."}'
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_REFUSAL), _REFUSAL)
)


def bounds() -> tuple[int, int]:
    """Return how many connections there may be, and how many may wait to be accepted.

    They follow from the file descriptors that the process may open: running out of those makes
    asyncio log thousands of lines a second.
    """
    descriptors = _MOST_DESCRIPTORS
    if sys.platform != "win32":
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        descriptors = descriptors if soft == resource.RLIM_INFINITY else min(descriptors, soft)
    backlog = max(4, descriptors // 16)
    return max(8, descriptors - _RESERVED_DESCRIPTORS - _ROUNDS * backlog), backlog


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn implements it, but idle connections cannot keep others out.

    If there are too many connections, the one that has been without a request for longest makes
    room; if all of them have one, the new one is told so.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most, _ = bounds()
        self._deadline: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, and start to wait for its first request."""
        others = [
            other
            for other in self.connections
            # One that makes room already is listed until the event loop's next turn.
            if isinstance(other, BoundedProtocol) and not other.transport.is_closing()
        ]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(others) >= self._most:
            idle = [other for other in others if other.idle]
            if not idle:
                transport.write(_REFUSED)
                transport.close()
                return
            min(idle, key=lambda other: other._idle_since).transport.abort()
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Read on; a head that has begun has a deadline until it is whole."""
        super().data_received(data)
        if not self.idle:
            self._stop_waiting()
        elif self._deadline is None:
            self._idle_since = self.loop.time()
            self._wait_for_head()

    def on_response_complete(self) -> None:
        """Begin to be idle."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.idle:
            self.transport.close()
