"""A proxy in front of a server, on the loopback, that takes a while to answer, counts, and can lose
answers: as HTTP/1.1 is, a thread a connection."""

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.stores import free_ports


class Served:
    """A server on the loopback, a thread a connection."""

    def _serve(self, handler, port=0):
        handler.protocol_version = "HTTP/1.1"
        handler.log_message = lambda *_: None
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        """End it."""
        self._server.shutdown()
        self._server.server_close()


class Proxy(Served):
    """seconds: that each answer takes at least. requests: (method, path, bytes answered) so far,
    and of each (path, range) `parts`; at_once: how many were there at the same time, at most."""

    def __init__(self, target, seconds=0.0, change=None, port=0):
        self.target, self.seconds, self.change = urlsplit(target), seconds, change
        self.requests = []
        self.parts = []
        self.at_once = self._now = 0
        self._closed = False
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def handle_all(self):
                proxy._now += 1
                proxy.at_once = max(proxy.at_once, proxy._now)
                proxy._answer(self)
                proxy._now -= 1

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_all

        self.endpoint = self._serve(Handler, port or free_ports(1)[0])

    def _answer(self, handler):
        if self._closed:
            handler.close_connection = True
            handler.connection.close()
            return
        began = time.monotonic()
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = []

        def forward():
            target = http.client.HTTPConnection(self.target.hostname or "", self.target.port or 80)
            target.request(handler.command, handler.path, body, dict(handler.headers.items()))
            answer = target.getresponse()
            content = answer.read()
            headers[:] = answer.getheaders()
            target.close()
            return answer.status, content

        change, path = self.change, handler.path
        result = forward() if change is None else change(handler.command, path, forward)
        self.requests.append((handler.command, path, len(result[1]) if result else 0))
        self.parts.append((path, handler.headers.get("Range")))
        if result is None:
            handler.close_connection = True
            handler.connection.close()
            return
        status, content = result
        time.sleep(max(0.0, began + self.seconds - time.monotonic()))
        handler.send_response(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)

    def close(self):
        """End it, also the connections that are there."""
        self._closed = True
        super().close()


class WebServer(Served):
    """A web server of a folder, which gives parts of files where `ranges`; no list of them."""

    def __init__(self, folder, ranges=True):
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append(self.path)
                file = folder / self.path.lstrip("/")
                if not file.is_file():
                    return self._say(404, b"")
                content, query = file.read_bytes(), self.headers.get("Range", "")
                if not query or not ranges:
                    return self._say(200, content)
                start, stop = query.removeprefix("bytes=").split("-")
                if int(start) >= len(content):
                    return self._say(416, b"")
                part = content[int(start) : int(stop) + 1]
                span = f"bytes {start}-{int(start) + len(part) - 1}/{len(content)}"
                return self._say(206, part, {"Content-Range": span})

            do_HEAD = do_GET

            def _say(self, status, content, headers={}):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.send_header("Last-Modified", "Wed, 25 Nov 2026 12:00:00 GMT")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

        self.address = self._serve(Handler)
