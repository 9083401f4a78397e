"""A slow server of arrays on this machine, for lack of a network."""

import socketserver
import struct
import threading
import time

import numpy as np

LATENCY = 0.003


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            head = self.request.recv(4)
            if len(head) < 4:
                return
            (index,) = struct.unpack("!I", head)
            time.sleep(LATENCY)
            self.request.sendall(self.server.rows[index].tobytes())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def start(rows):
    """Serve the rows of an array; returns the port."""
    server = Server(("127.0.0.1", 0), Handler)
    server.rows = np.ascontiguousarray(rows, np.float32)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
