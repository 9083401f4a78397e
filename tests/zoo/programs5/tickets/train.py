import argparse
import time

import torch
from accelerate import Accelerator
from text import Tokenizer, make_tickets
from torch import nn
from torch.utils.data import DataLoader


class Router(nn.Module):
    def __init__(self, size=4096, dim=96):
        super().__init__()
        self.embed = nn.Embedding(size, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids)).mean(1))


class Encode:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, batch):
        texts, topics = zip(*batch)
        return torch.tensor([self.tokenizer.encode(text) for text in texts]), torch.tensor(topics)


def plain(batch):
    texts, topics = zip(*batch)
    return list(texts), torch.tensor(topics)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tickets", type=int, default=4800)
    parser.add_argument("--encode-in-workers", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tokenizer = Tokenizer()
    loader = DataLoader(
        make_tickets(args.tickets),
        batch_size=24,
        shuffle=True,
        collate_fn=Encode(tokenizer) if args.encode_in_workers else plain,
        num_workers=1,
        persistent_workers=True,
    )
    accelerator = Accelerator(cpu=True)
    model = Router()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps, start = 0, time.perf_counter()
    for texts, topics in loader:
        ids = texts
        if not args.encode_in_workers:
            ids = torch.tensor([tokenizer.encode(text) for text in texts])
        loss = nn.functional.cross_entropy(model(ids), topics)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if steps % 50 == 0:
            accelerator.print(f"step {steps}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
