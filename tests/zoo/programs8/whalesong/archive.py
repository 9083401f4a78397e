"""Hands out clips over HTTP, as the archive on the ship's server does."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

CLIP = 4096
ROUND_TRIP = 0.003


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    clips = np.random.default_rng(0).normal(0, 0.2, (512, CLIP)).astype(np.float32)

    def do_GET(self):
        first, last = (int(part) for part in self.path.strip("/").split("-"))
        body = self.clips[first:last].tobytes()
        time.sleep(ROUND_TRIP)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)
