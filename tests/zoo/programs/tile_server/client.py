import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np


class Client:
    """Fetches rows, one request after the other."""

    def __init__(self, port, width):
        self.width = width
        self.connection = self.connect(port)

    def connect(self, port):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(self, connection, index):
        connection.sendall(struct.pack("!I", index))
        wanted = self.width * 4
        parts = []
        while wanted:
            part = connection.recv(wanted)
            parts.append(part)
            wanted -= len(part)
        return np.frombuffer(b"".join(parts), np.float32)

    def batches(self, order, size):
        for begin in range(0, len(order), size):
            chosen = order[begin : begin + size]
            rows = [self.ask(self.connection, int(index)) for index in chosen]
            yield chosen, np.stack(rows)


class PooledClient(Client):
    """Fetches the rows of the next batches at the same time, while this one is used."""

    def __init__(self, port, width, connections=16):
        super().__init__(port, width)
        self.connections = [self.connect(port) for _ in range(connections)]
        self.pool = ThreadPoolExecutor(connections)

    def fetch(self, chosen):
        jobs = zip(self.connections, chosen)
        return [self.pool.submit(self.ask, connection, int(index)) for connection, index in jobs]

    def batches(self, order, size):
        parts = [order[begin : begin + size] for begin in range(0, len(order), size)]
        coming = self.fetch(parts[0])
        for number, chosen in enumerate(parts):
            rows = [job.result() for job in coming]
            if number + 1 < len(parts):
                coming = self.fetch(parts[number + 1])
            yield chosen, np.stack(rows)
