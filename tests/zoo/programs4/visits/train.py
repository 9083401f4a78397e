"""Risk from the codes of a patient's visits."""

import argparse
import time

import torch
from events import N_CODES, Histories
from torch import nn
from tqdm import trange


class RiskModel(nn.Module):
    def __init__(self, dim=96, depth=2):
        super().__init__()
        self.embed = nn.Embedding(N_CODES, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 1)

    def forward(self, codes):
        padding = codes == 0
        h = self.layers(self.embed(codes), src_key_padding_mask=padding)
        real = (~padding).unsqueeze(-1)
        return self.out((h * real).sum(1) / real.sum(1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--max-len", type=int)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    histories = Histories(3000, max_len=args.max_len)
    model = RiskModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    mean = 0.0
    t0 = time.perf_counter()
    for step in (bar := trange(args.steps, mininterval=2)):
        codes, risk = histories.batch(args.batch)
        loss = nn.functional.binary_cross_entropy_with_logits(model(codes), risk)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean += (loss.item() - mean) / (step + 1)
        if step % 40 == 0:
            bar.set_description(f"loss {mean:.4f}")
    print(f"mean loss {mean:.5f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
