"""A stand-in for the online feature store: ids in, rows of floats out, over TCP."""

import multiprocessing
import socket
import socketserver
import struct
import time

import numpy as np

N_FEATURES = 96
ANSWER_TIME = 0.0015  # as measured from the training nodes


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := self.rfile.read(4):
            (n,) = struct.unpack("<I", header)
            ids = np.frombuffer(self.rfile.read(8 * n), np.int64)
            time.sleep(ANSWER_TIME)
            self.wfile.write(self.server.table[ids % len(self.server.table)].tobytes())


def serve(ready, n_rows):
    rng = np.random.default_rng(77)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.table = rng.normal(0, 1, (n_rows, N_FEATURES)).astype(np.float32)
        ready.send(server.server_address)
        server.serve_forever()


def start_store(n_rows):
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(theirs, n_rows), daemon=True)
    process.start()
    return process, ours.recv()


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fetch(self, ids):
        self.socket.sendall(struct.pack("<I", len(ids)) + np.asarray(ids, np.int64).tobytes())
        wanted = 4 * N_FEATURES * len(ids)
        answer = bytearray()
        while len(answer) < wanted:
            answer += self.socket.recv(wanted - len(answer))
        return np.frombuffer(answer, np.float32).reshape(len(ids), N_FEATURES)
