"""Ship or no ship: tiles come from the tile server of the harbour."""

import argparse
import http.server
import multiprocessing
import time
import urllib.request

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TILE = 3 * 20 * 20


class Tiles(http.server.BaseHTTPRequestHandler):
    store = np.random.default_rng(0).integers(0, 255, (960, TILE), dtype=np.uint8)

    def do_GET(self):
        time.sleep(0.004)
        first, last = self.path.strip("/").split("-")
        body = self.store[int(first) : int(last)].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(pipe):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
    pipe.send(server.server_port)
    server.serve_forever()


def download(port, first, last):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{first}-{last}") as response:
        data = np.frombuffer(response.read(), dtype=np.uint8).reshape(-1, 3, 20, 20)
    return torch.from_numpy(data.astype(np.float32) / 255)


class Harbour(Dataset):
    def __init__(self, port, bulk):
        self.port = port
        self.tiles = download(port, 0, 960) if bulk else None

    def __len__(self):
        return 960

    def __getitem__(self, i):
        if self.tiles is not None:
            return self.tiles[i], i % 2
        return download(self.port, i, i + 1)[0], i % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bulk", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    loader = DataLoader(Harbour(ours.recv(), args.bulk), 12, shuffle=True, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 48, 3), nn.ReLU(), nn.Conv2d(48, 48, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 2),
    )  # fmt: skip
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
    server.terminate()


if __name__ == "__main__":
    main()
