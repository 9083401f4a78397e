"""Frames live in an object store; here a server of our own stands in for it."""

import http.client
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

SHAPE = (3, 48, 48)
ROUND_TRIP = 0.006


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        time.sleep(ROUND_TRIP)
        seed = int(self.path.rsplit("/", 1)[1])
        body = np.random.default_rng(seed).integers(0, 256, SHAPE, dtype=np.uint8).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def _serve(ready):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_address[1])
    server.serve_forever()


def start():
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    return process, ours.recv()


class Bucket:
    def __init__(self, port):
        self.port = port
        self.connection = None

    def get(self, key):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", f"/frames/{key}")
        return self.connection.getresponse().read()
