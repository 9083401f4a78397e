"""A bucket of tiles behind HTTP, some milliseconds away."""

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import numpy as np

SHAPE = (4, 32, 32)
LATENCY = 0.005


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(LATENCY)
        rng = np.random.default_rng(int(self.path.rsplit("/", 1)[1]))
        body = rng.random(SHAPE, dtype=np.float32).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(server):
    server.serve_forever()


def open_bucket():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    process = multiprocessing.get_context("fork").Process(target=serve, args=(server,), daemon=True)
    process.start()
    server.socket.close()
    return f"http://127.0.0.1:{server.server_address[1]}/tiles"


def download(url):
    with urlopen(url) as response:
        return response.read()


def mirror(url, count, folder):
    """Copy all tiles of the bucket to a local folder."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)

    def copy(index):
        (folder / f"{index}.bin").write_bytes(download(f"{url}/{index}"))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(copy, range(count)))
    return folder
