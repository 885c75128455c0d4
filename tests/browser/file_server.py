"""A plain file server, which knows nothing of the site that it serves under a sub-path."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve_files(site: Path, folder: Path) -> Iterator[str]:
    """Serve a copy of a site from a folder, and give its address, which has a sub-path."""
    shutil.copytree(site, folder / "projects" / "nlnet")
    handler = partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/projects/nlnet/"
        finally:
            server.shutdown()
            thread.join()
