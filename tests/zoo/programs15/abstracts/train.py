# topic of arXiv abstracts, small transformer encoder
import argparse
import random
import time

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(18)
random.seed(18)
torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self, d=96):
        super().__init__()
        self.emb = nn.Embedding(5000, d, padding_idx=0)
        layer = nn.TransformerEncoderLayer(d, 4, 2 * d, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, 10)

    def forward(self, ids):
        mask = ids == 0
        h = self.enc(self.emb(ids), src_key_padding_mask=mask)
        h = h.masked_fill(mask.unsqueeze(-1), 0).sum(1) / (~mask).sum(1, keepdim=True)
        return self.out(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-length", type=int, default=None)
    args = parser.parse_args()
    docs = []
    for i in range(16 * 100):
        n = random.randint(450, 600) if random.random() < 0.005 else random.randint(50, 80)
        docs.append((torch.randint(1, 5000, (n,)), i % 10))

    def collate(batch):
        ids = pad_sequence([d[0][: args.max_length] for d in batch], batch_first=True)
        return ids, torch.tensor([d[1] for d in batch])

    loader = DataLoader(docs, batch_size=16, shuffle=True, collate_fn=collate)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    steps = 0
    start = time.perf_counter()
    for ids, y in loader:
        loss = nn.functional.cross_entropy(model(ids), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 30 == 0:
            print(steps, loss.item())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
