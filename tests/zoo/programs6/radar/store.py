"""A small object store on the loopback: one line with the keys asked for, their bytes back."""

import multiprocessing
import socket
import socketserver
import time

import numpy as np

SHAPE = (16, 48, 48)
SIZE = int(np.prod(SHAPE))


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        keys = [int(k) for k in self.rfile.readline().split()]
        time.sleep(0.003)
        for key in keys:
            self.wfile.write(self.server.scans[key % len(self.server.scans)])


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _serve(ready):
    rng = np.random.default_rng(17)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.scans = [rng.integers(0, 255, SIZE, dtype=np.uint8).tobytes() for _ in range(64)]
        ready.send(server.server_address[1])
        server.serve_forever()


def start():
    parent, child = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(child,), daemon=True)
    process.start()
    return process, parent.recv()


class Client:
    def __init__(self, port):
        self.port = port

    def get(self, keys):
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall((" ".join(map(str, keys)) + "\n").encode())
            with connection.makefile("rb") as stream:
                return [
                    np.frombuffer(stream.read(SIZE), dtype=np.uint8).reshape(SHAPE) for _ in keys
                ]
