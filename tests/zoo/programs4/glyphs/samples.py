import struct
import zlib

import numpy as np
import torch


def write_png(path, gray):
    """Eight bit gray, the largest compression: the folder is synced home."""
    height, width = gray.shape

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + row.tobytes() for row in gray)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        f.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)))
        f.write(chunk(b"IDAT", zlib.compress(rows, 9)))
        f.write(chunk(b"IEND", b""))


class SampleWriter:
    def __init__(self, generator, folder, n=100, seed=123):
        self.generator, self.folder, self.n = generator, folder, n
        self.z = torch.randn(n, generator.z, generator=torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def write(self, step):
        self.generator.eval()
        images = self.generator(self.z)[:, 0].numpy()
        self.generator.train()
        side = int(self.n**0.5)
        grid = images.reshape(side, side, 32, 32).transpose(0, 2, 1, 3).reshape(side * 32, -1)
        big = np.kron(grid, np.ones((2, 2), np.float32))
        write_png(f"{self.folder}/{step:06d}.png", ((big + 1) * 127.5).astype(np.uint8))
