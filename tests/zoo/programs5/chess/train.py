import argparse
import time

import torch
from games import Batches, make_games
from torch import nn

torch._dynamo.config.cache_size_limit = 256


class Player(nn.Module):
    def __init__(self, n_moves=600, dim=96):
        super().__init__()
        self.embed = nn.Embedding(n_moves, dim, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(dim, 2 * dim, 4) for _ in range(4))
        self.out = nn.Linear(dim, n_moves)

    def forward(self, moves):
        x = self.embed(moves).transpose(1, 2)
        for conv in self.filters:
            value, gate = conv(nn.functional.pad(x, (3, 0))).chunk(2, 1)
            x = x + torch.tanh(value) * torch.sigmoid(gate)
        return self.out(x.transpose(1, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--games", type=int, default=960)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--multiple", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Player()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    compiled = torch.compile(model, dynamic=False, backend="aot_eager")
    batches = Batches(make_games(args.games), 16, args.multiple)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for moves in batches:
            scores = compiled(moves[:, :-1])
            loss = nn.functional.cross_entropy(
                scores.flatten(0, 1), moves[:, 1:].flatten(), ignore_index=0
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
