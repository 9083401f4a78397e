"""The archive of the water authority: a little server that hands out records of stations."""

import multiprocessing
import socket
import struct
import time

import numpy as np

STATIONS = 96
HOURS = 1500
ANSWER_TIME = 0.001


def records():
    rng = np.random.default_rng(3)
    hours = np.arange(HOURS)
    base = np.sin(hours / 24 * 2 * np.pi)[None] * rng.uniform(0.2, 1.0, (STATIONS, 1))
    drift = np.cumsum(rng.normal(0, 0.05, (STATIONS, HOURS)), 1)
    return (base + drift + rng.normal(0, 0.1, base.shape)).astype(np.float32)


def receive(connection, count):
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def serve(listener):
    data = records()
    while True:
        connection, _ = listener.accept()
        try:
            while True:
                first, last, begin, end = struct.unpack("4i", receive(connection, 16))
                time.sleep(ANSWER_TIME)
                connection.sendall(data[first:last, begin:end].tobytes())
        except ConnectionError:
            connection.close()


def start_archive():
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=serve, args=(listener,), daemon=True)
    process.start()
    listener.close()
    return address


class Archive:
    def __init__(self, address):
        self.address = address
        self.connection = None

    def query(self, first, last, begin, end):
        if self.connection is None:
            self.connection = socket.create_connection(self.address)
        self.connection.sendall(struct.pack("4i", first, last, begin, end))
        size = 4 * (last - first) * (end - begin)
        data = np.frombuffer(receive(self.connection, size), np.float32)
        return data.reshape(last - first, end - begin)
