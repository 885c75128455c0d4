"""The page without a server: ``make site`` writes it to ``build/site``, for any web server.

What ``nlnet serve`` shows, with the engine in the browser as its back end; the engine with and
without threads; the models; and a service worker.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
from pathlib import Path

from engine.build import build_for
from scripts import browser_models

PROJECT = Path(__file__).resolve().parent.parent
STATIC = PROJECT / "src" / "nlnet" / "web" / "static"
PACKAGE = PROJECT / "js"
SITE = PROJECT / "build" / "site"

ENGINES = {"wasm": "nlnet_engine.wasm", "wasm-shared": "nlnet_engine_threads.wasm"}
SERVER_ONLY = ("docs.html", "docs.js", "index.html", "server.js")
LATER = ("-plus.nlnet", "nlnet_engine.wasm")
"""What a first visit does not load: the best models, and the engine without threads."""

MOST = 1_500_000
"""Bytes of a first visit, compressed, at most."""

_SCRIPTS = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'"
_POLICY = f"default-src 'none'; {_SCRIPTS}; style-src 'self'; img-src 'self' blob: data:"
_HEAD = '<meta charset="utf-8" />'


def main() -> None:
    """Build the site, and say how large it is."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    fill_package()
    build(SITE)
    size = first_visit(SITE)
    print(f"{SITE.relative_to(PROJECT)}: {size:,} bytes on a first visit, of {MOST:,} at most")


def fill_package() -> None:
    """Put the engine and the models into the package for npm."""
    (PACKAGE / "engine").mkdir(exist_ok=True)
    for target, name in ENGINES.items():
        shutil.copyfile(build_for(target).library(), PACKAGE / "engine" / name)
    browser_models.main()


def build(site: Path) -> None:
    """Write the site into a folder, which is emptied first."""
    shutil.rmtree(site, ignore_errors=True)
    own = shutil.ignore_patterns(*SERVER_ONLY, "service-worker.js")
    shutil.copytree(STATIC, site / "static", ignore=own)
    for folder in ("src", "engine", "models"):
        ignored = shutil.ignore_patterns("*node.js", "*.d.ts")
        shutil.copytree(PACKAGE / folder, site / "nlnet" / folder, ignore=ignored)
    text = (STATIC / "backend.js").read_text(encoding="utf-8")
    _write(site / "static" / "backend.js", text.replace('"./server.js"', '"./engine.js"'))
    policy = f'{_HEAD}\n    <meta http-equiv="Content-Security-Policy" content="{_POLICY}" />'
    page = (STATIC / "index.html").read_text(encoding="utf-8").replace(_HEAD, policy)
    _write(site / "index.html", page)
    files = [path.relative_to(site).as_posix() for path in _loaded(site)]
    worker = (STATIC / "service-worker.js").read_text(encoding="utf-8")
    worker = worker.replace('["FILES"]', json.dumps(["./", *files], indent=1))
    worker = worker.replace('"VERSION"', json.dumps(_digest(site)))
    _write(site / "service-worker.js", worker)


def first_visit(site: Path) -> int:
    """Return the bytes that are loaded before the first photo can be denoised, compressed."""
    loaded = [*_loaded(site), site / "service-worker.js"]
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in loaded)


def _loaded(site: Path) -> list[Path]:
    paths = sorted(path for path in site.rglob("*") if path.is_file())
    return [path for path in paths if not path.name.endswith(LATER)]


def _digest(site: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in site.rglob("*") if path.is_file()):
        digest.update(path.relative_to(site).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
