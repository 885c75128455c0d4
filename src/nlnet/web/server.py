"""The server process: its socket, its start, and its stop on a signal."""

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import pyvips
import uvicorn

from nlnet.errors import InputError, reason_of
from nlnet.web.app import LOOPBACK_HOSTS, create_app
from nlnet.web.service import Service

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_REASONS = {
    errno.EADDRINUSE: "the port is in use; choose another with --port",
    errno.EACCES: "ports below 1024 are for administrators; choose another with --port",
    errno.EADDRNOTAVAIL: "this machine does not have that address; choose another with --host",
}


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a port of 0 means any that is free.

    Raises
    ------
    InputError
        If that is not possible; the sentence says why.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except socket.gaierror as error:
        raise InputError(
            f"Cannot listen on {host!r}: that is no address of this machine; "
            "choose another with --host."
        ) from error
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or reason_of(error)
        raise InputError(f"Cannot listen on {host}:{port}: {reason}.") from error


def is_loopback(listener: socket.socket) -> bool:
    """Tell whether only programs on this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    """Return the address for a browser on this machine."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(service: Service, listener: socket.socket, tell: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; jobs that run by then are finished and answered.

    A second Ctrl-C stops them, too. Afterwards both signals are ignored, as the process is about to
    end.

    Parameters
    ----------
    service : Service
        What does the work.
    listener : socket
        From `listen`.
    tell : callable
        Called with what the server does: once requests are answered, and if it does not stop at
        once.

    Raises
    ------
    KeyboardInterrupt
        If a second Ctrl-C cut the work short.
    """
    hosts = (*LOOPBACK_HOSTS, listener.getsockname()[0]) if is_loopback(listener) else None
    config = uvicorn.Config(
        create_app(service, hosts),
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
    )

    # libvips would keep uploads in case they are read again.
    pyvips.cache_set_max(0)
    # What is wrong with a client's form is told to the client, and need not fill the log.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)

    server = _Server(config, service, tell, url_of(listener))
    # uvicorn handles the same signals, and restores the handlers from before when it ends. Then the
    # signals are ignored: Python removes its handlers at exit, and a late signal would kill it.
    _on_stop_signals(server.handle_exit)
    server.run(sockets=[listener])
    _on_stop_signals(signal.SIG_IGN)
    if server.interrupted:
        raise KeyboardInterrupt


def _on_stop_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in _STOP_SIGNALS:
        signal.signal(number, handler)


class _Server(uvicorn.Server):
    """uvicorn, but being stopped is no error, and waiting jobs do not delay it."""

    def __init__(
        self, config: uvicorn.Config, service: Service, tell: Callable[[str], None], url: str
    ) -> None:
        super().__init__(config)
        self._service = service
        self._tell = tell
        self._url = url
        self._loop: asyncio.AbstractEventLoop | None = None
        self.interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop when the running job is done, or at once at a second Ctrl-C.

        uvicorn would drop the requests without an answer, and raise the signals again at the end.
        """
        again = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        if again and self._loop is not None and self._service.queue.unfinished:
            self.interrupted = True
            self._loop.call_soon_threadsafe(self._service.queue.abort)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._tell(f"serves {self._url} (Ctrl-C stops it)")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        running = self._service.queue.standing()
        if running is not None:
            self._tell(
                f"finishes the image at hand, which is {running.share:.0%} done; "
                "Ctrl-C again stops at once"
            )
        self._service.queue.close()
        await super().shutdown(sockets)
