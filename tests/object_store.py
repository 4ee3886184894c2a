"""An object store for tests: moto's server, in this process, with a bucket for each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from threading import Thread

import pytest

NUMBERS = count(1)
KEYS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "something", "AWS_REGION": "us-east-1"}


@contextmanager
def served(patch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store that the environment names; gives its host and port."""
    moto = pytest.importorskip("moto.server", reason="needs moto[s3], flask and flask-cors", exc_type=ImportError)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    patch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    server.start()
    try:
        _, port = server.get_host_and_port()
        for name, value in (KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}).items():
            patch.setenv(name, value)
        yield f"127.0.0.1:{port}"
    finally:
        server.stop()


def new_bucket() -> str:
    """The name of a bucket that was made for this."""
    from pyarrow.fs import FileSystem

    name = f"bucket-{next(NUMBERS)}"
    store, path = FileSystem.from_uri(f"s3://{name}?allow_bucket_creation=true")
    store.create_dir(path)
    return name


class _Refusing(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def refusing() -> Iterator[str]:
    """The address of a server that lets nobody in."""
    server = HTTPServer(("127.0.0.1", 0), _Refusing)
    running = Thread(target=server.serve_forever, args=(0.05,))
    running.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        running.join()
        server.server_close()
