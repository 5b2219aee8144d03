"""A proxy in front of a server, on the loopback, that takes a while to answer, counts, and can lose
answers: as HTTP/1.1 is, a thread a connection."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Change = Callable[[str, str, int, bytes], tuple[int, bytes] | None]
"""change(method, path, status, body) -> what is answered instead; None for nothing at all."""


class Proxy:
    """seconds: that each answer takes longer. requests: (method, path, bytes answered) so far."""

    def __init__(self, target: str, seconds: float = 0.0, change: Change | None = None) -> None:
        self.target, self.seconds, self.change = urlsplit(target), seconds, change
        self.requests: list[tuple[str, str, int]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_all(self) -> None:
                proxy._answer(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_all

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        began = time.monotonic()
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        target = http.client.HTTPConnection(self.target.hostname or "", self.target.port or 80)
        headers = {name: value for name, value in handler.headers.items()}
        target.request(handler.command, handler.path, body, headers)
        answer = target.getresponse()
        status, content = answer.status, answer.read()
        target.close()
        self.requests.append((handler.command, handler.path, len(content)))
        if self.change is not None:
            changed = self.change(handler.command, handler.path, status, content)
            if changed is None:
                handler.close_connection = True
                handler.connection.close()
                return
            status, content = changed
        time.sleep(max(0.0, began + self.seconds - time.monotonic()))
        handler.send_response(status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date"):
                handler.send_header(name, value)
        kept = answer.getheader("Content-Length", "0") if handler.command == "HEAD" else None
        handler.send_header("Content-Length", kept or str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
