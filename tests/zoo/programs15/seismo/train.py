"""Phase picking on seismograms that live on the institute's waveform server (here on localhost)."""

import argparse
import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SAMPLES = 600


class Waveforms(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.010)
        ids = [int(i) for i in self.path.strip("/").split(",")]
        body = b"".join(
            np.random.default_rng(i).standard_normal(3 * SAMPLES, dtype=np.float32).tobytes()
            for i in ids
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def serve(pipe):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Waveforms)
    pipe.send(server.server_port)
    server.serve_forever()


def download(port, ids):
    url = f"http://127.0.0.1:{port}/" + ",".join(str(i) for i in ids)
    with urllib.request.urlopen(url) as answer:
        return np.frombuffer(answer.read(), dtype=np.float32).reshape(len(ids), 3, SAMPLES)


class Events(Dataset):
    def __init__(self, port, n):
        self.port = port
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        w = download(self.port, [i])[0]
        return torch.from_numpy(w.copy()), i * 7 % SAMPLES


class GroupedEvents(Events):
    def __getitems__(self, ids):
        w = torch.from_numpy(download(self.port, ids).copy())
        return [(w[k], i * 7 % SAMPLES) for k, i in enumerate(ids)]


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(3, 48, 11, padding=5)
        self.c2 = nn.Conv1d(48, 64, 11, padding=5)
        self.c3 = nn.Conv1d(64, 48, 11, padding=5)
        self.out = nn.Conv1d(48, 1, 1)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.out(x).squeeze(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grouped", action="store_true")
    args = parser.parse_args()
    here, there = multiprocessing.Pipe()
    multiprocessing.Process(target=serve, args=(there,), daemon=True).start()
    port = here.recv()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    events = (GroupedEvents if args.grouped else Events)(port, 16 * 80)
    loader = DataLoader(events, batch_size=16, shuffle=True, num_workers=2)
    model = Picker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    begin = time.perf_counter()
    for x, onset in loader:
        loss = F.cross_entropy(model(x), onset)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 20 == 0:
            print(steps, loss.item())
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")
