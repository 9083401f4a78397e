import torch


class KeyQueue:
    """Keys of earlier batches, to tell the new ones apart from."""

    def __init__(self, dim, size):
        self.size = size
        self.keys = torch.empty(0, dim)

    def push(self, keys):
        self.keys = torch.cat((keys, self.keys))
        if self.size:
            self.keys = self.keys[: self.size]
