"""A server of files that fails as servers do."""

import hashlib
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Serves `files`; of a path's `faults`, each request takes the next."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.faults, self.requests, self.authorizations = {}, {}, [], []
        self.sent = threading.Semaphore(0)
        self.end = threading.Event()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"

    @property
    def asked_from(self):
        """The first byte that each request asked for, in their order."""
        return [start for _, start in self.requests]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        faults = server.faults.get(self.path, [])
        fault = faults.pop(0) if faults else ""
        content = server.files.get(self.path)
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        server.requests.append((self.path, start))
        server.authorizations.append(self.headers.get("Authorization"))
        if fault.isdecimal() or content is None:
            return self.send_error(int(fault or 404))
        if fault == "drips its header":
            return self.drip(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 10_000)
        if fault.startswith(("/", "http://")):
            self.send_response(302)
            self.send_header("Location", fault)
            return self.end_headers()
        etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        if fault in ("no ranges", "lies") or self.headers.get("If-Range", etag) != etag:
            start = 0
        if start and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            return self.end_headers()
        if fault == "elsewhere":  # what was asked for is not what comes
            self.send_response(206)
            self.send_header("Content-Range", f"bytes 1-{len(content) - 1}/{len(content)}")
        elif start:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        factor = {"announces more": 2, "lies": 2, "announces less": 0.5}.get(fault, 1)
        if fault.startswith("length "):
            for length in fault.removeprefix("length ").split(" and "):
                self.send_header("Content-Length", length)
        elif fault != "no length":
            self.send_header("Content-Length", str(int(factor * len(content)) - start))
        if fault != "no etag":
            self.send_header("ETag", etag)
        if fault == "encoded":
            self.send_header("Content-Encoding", "br")
        self.end_headers()
        if fault == "drips":
            return self.drip(content[start:])
        stop = len(content)
        if fault in ("breaks off", "no etag", "stalls"):
            stop = start + (len(content) - start) // 2
        elif fault.startswith("stalls at "):
            stop = int(fault.removeprefix("stalls at "))
        self.wfile.write(content[start:stop])
        self.wfile.flush()
        server.sent.release()
        if fault.startswith("stalls"):
            server.end.wait(30)

    def drip(self, content):
        """Send a byte every 20 ms until the client has gone."""
        for i in range(len(content)):
            self.wfile.write(content[i : i + 1])
            self.wfile.flush()
            if self.server.end.wait(0.02):
                break

    def handle(self):
        """Serve a request; a client that goes away meanwhile is not an error."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, *arguments):
        """Print nothing."""


@contextmanager
def serving(files):
    """Serve contents by their paths for as long as the block lasts."""
    server = Server()
    server.files.update(files)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.end.set()
        server.shutdown()
        thread.join()
        server.server_close()
