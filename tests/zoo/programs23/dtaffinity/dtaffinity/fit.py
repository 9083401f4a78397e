import argparse
import time

import torch
from torch.nn import functional as F

from .assays import make_assays
from .network import AffinityNet


@torch.no_grad()
def concordance(model, assays):
    model.eval()
    predicted = model(assays.fingerprints, assays.residues)
    model.train()
    ahead = assays.affinity[:, None] > assays.affinity[None, :]
    agree = predicted[:, None] > predicted[None, :]
    return (ahead & agree).sum().item() / max(ahead.sum().item(), 1)


class Fitting:
    def __init__(self, options):
        self.options = options
        self.train, self.held_out = make_assays(options.assays, options.seed).split(128)
        self.model = AffinityNet(options.fusion)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        self.generator = torch.Generator().manual_seed(options.seed)
        self.steps = 0

    def step(self, fingerprints, residues, affinity):
        loss = F.smooth_l1_loss(self.model(fingerprints, residues), affinity)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss

    def run(self):
        for epoch in range(self.options.epochs):
            for batch in self.train.batches(self.options.batch_size, self.generator):
                loss = self.step(*batch)
            score = concordance(self.model, self.held_out)
            print(f"epoch {epoch}: loss {loss.item():.4f}, concordance {score:.3f}")


def main():
    parser = argparse.ArgumentParser(prog="dtaffinity.fit")
    parser.add_argument("--assays", type=int, default=5248)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--fusion", choices=["bilinear", "product"], default="bilinear")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    fitting = Fitting(options)
    start = time.perf_counter()
    fitting.run()
    print(f"trained {fitting.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
