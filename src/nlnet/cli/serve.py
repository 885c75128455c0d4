"""Serve a web page that denoises images.

Serve a web page that denoises images, and its HTTP API. It works offline, keeps uploads in memory
only, and can be reached only from this machine, unless --host says otherwise. It needs the extra
'web': pip install 'nlnet[web]'.

Examples
--------
  nlnet serve                                 then open http://127.0.0.1:8000 in a browser
  nlnet serve --port 9000 --model mine.safetensors
  curl -F file=@noisy.png -F sigma=25 http://127.0.0.1:8000/api/denoise -o clean.png

Ctrl-C or SIGTERM stops the server when the current image is done; a second Ctrl-C stops it at once.
"""

import argparse
import sys
from pathlib import Path

from nlnet.cli.arguments import argument, digits, in_range, positive, whole_number
from nlnet.cli.output import needs_extra

_PORT = in_range(digits, "a whole number of at most 65535", -1, 65535)
_NEEDED = ("fastapi", "fastapi_offline", "pydantic", "python_multipart", "starlette", "uvicorn")


ARGUMENTS = (
    argument(
        "--host H",
        "address to listen on (default: 127.0.0.1, reachable from this machine only)",
        default="127.0.0.1",
    ),
    argument("--port P", "port to listen on, 0 for any free port", _PORT, 8000),
    argument(
        "--model FILE",
        "model file to offer as well, and to prefer; can be given more than once",
        Path,
        action="append",
    ),
    argument("--max-upload MB", "largest upload in megabytes", positive, 160),
    argument("--max-pixels MP", "largest image in megapixels", positive, 50),
    argument("--queue N", "images that may wait while one is denoised", whole_number, 16),
    argument("--timeout S", "seconds that one image may take", positive, 300),
)


def run(arguments: argparse.Namespace) -> None:
    """Serve until told to stop."""
    with needs_extra("web", *_NEEDED):
        from nlnet.web.server import is_loopback, listen, serve
        from nlnet.web.service import Service
    from nlnet.model.loading import load_model
    from nlnet.web.schema import Catalog
    from nlnet.web.service import Limits

    catalog = Catalog([load_model(path) for path in arguments.model or ()])
    with listen(arguments.host, arguments.port) as listener:
        if not is_loopback(listener):
            print(
                "nlnet: warning: everyone who reaches this machine can use the server; it has no "
                "passwords and no encryption.",
                file=sys.stderr,
            )
        limits = Limits(
            upload_bytes=arguments.max_upload * 2**20,
            pixels=arguments.max_pixels * 10**6,
            waiting=arguments.queue,
            job_seconds=arguments.timeout,
        )
        serve(Service(catalog, limits), listener, lambda what: print(f"nlnet {what}", flush=True))
    print("nlnet has stopped")
