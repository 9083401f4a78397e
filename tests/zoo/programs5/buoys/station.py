"""Waves measured by buoys. They are far away: the archive answers one request at a time, slowly."""

import socket
import struct
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

LENGTH = 256


def measured(number):
    rng = np.random.default_rng(number)
    t = np.arange(LENGTH) / 16
    height, period = rng.uniform(0.5, 3), rng.uniform(4, 12)
    waves = height * np.sin(2 * np.pi * t / period) + rng.normal(0, 0.2, LENGTH)
    return np.append(waves, height).astype("<f4").tobytes()


def answer(connection, delay):
    with connection:
        while len(request := connection.recv(4)) == 4:
            time.sleep(delay)
            connection.sendall(RECORDS[struct.unpack("<I", request)[0] % len(RECORDS)])


RECORDS = []


def serve(ready, delay):
    RECORDS.extend(map(measured, range(2000)))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready.put(server.getsockname()[1])
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=(connection, delay), daemon=True).start()


class Archive:
    def __init__(self, port):
        self.port = port
        self.local = threading.local()

    def record(self, number):
        if not hasattr(self.local, "socket"):
            self.local.socket = socket.create_connection(("127.0.0.1", self.port))
        self.local.socket.sendall(struct.pack("<I", int(number)))
        answer, wanted = b"", 4 * (LENGTH + 1)
        while len(answer) < wanted:
            answer += self.local.socket.recv(wanted - len(answer))
        return np.frombuffer(answer, "<f4")


def choose(n_records, batch_size, n_batches, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        yield rng.integers(n_records, size=batch_size)


def split(records):
    records = np.stack(records)
    return records[:, :-1], records[:, -1]


def batches(archive, chosen):
    for wanted in chosen:
        yield split([archive.record(number) for number in wanted])


def batches_ahead(archive, chosen, at_once, ahead=4):
    """Ask for several records at once, and for those of the next batches while one is used."""
    with ThreadPoolExecutor(at_once) as pool:
        waiting = deque()
        for wanted in chosen:
            waiting.append([pool.submit(archive.record, number) for number in wanted])
            if len(waiting) > ahead:
                yield split([answer.result() for answer in waiting.popleft()])
        for answers in waiting:
            yield split([answer.result() for answer in answers])
