"""A picture store that speaks HTTP, and a dataset that reads from it."""

import http.client
import multiprocessing
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
from torch.utils.data import Dataset

SHAPE = (3, 32, 32)
SIZE = 3 * 32 * 32
CLASSES = 5


def picture_bytes(index):
    rng = np.random.default_rng(index)
    return (
        (rng.integers(0, 200, SIZE, dtype=np.uint8) + 10 * (index % CLASSES))
        .astype(np.uint8)
        .tobytes()
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        time.sleep(0.004)
        indices = [int(part) for part in self.path.strip("/").split(",")]
        body = b"".join(picture_bytes(index) for index in indices)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def start_store():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    port = server.server_address[1]
    server.socket.close()
    return process, port


class RemotePictures(Dataset):
    def __init__(self, port, count):
        self.port = port
        self.count = count
        self.connection = None

    def __len__(self):
        return self.count

    def fetch(self, indices):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.connection.request("GET", "/" + ",".join(str(index) for index in indices))
        return self.connection.getresponse().read()

    def decode(self, raw, index):
        pixels = torch.from_numpy(np.frombuffer(raw, dtype=np.uint8).reshape(SHAPE).copy())
        return pixels.float().div_(255), index % CLASSES

    def __getitem__(self, index):
        return self.decode(self.fetch([index]), index)


class RemoteBatches(RemotePictures):
    def __getitems__(self, indices):
        raw = self.fetch(indices)
        return [
            self.decode(raw[i * SIZE : (i + 1) * SIZE], index) for i, index in enumerate(indices)
        ]
