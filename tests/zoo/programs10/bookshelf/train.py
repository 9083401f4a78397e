import argparse
import time

import torch
from model import Recommender, make_optimizers
from torch.nn.functional import cross_entropy

BOOKS = 120_000
SHELVES = 200


def make_readers(count, length):
    history = torch.randint(BOOKS, (count, length))
    shelf = history[:, -1] % SHELVES
    return history, shelf


def train(model, optimizers, history, shelf, epochs, batch_size):
    steps = 0
    for epoch in range(epochs):
        running = 0.0
        chunks = torch.randperm(len(history)).split(batch_size)
        for rows in chunks:
            loss = cross_entropy(model(history[rows]), shelf[rows])
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            running += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {running / len(chunks):.4f}")
    return steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--sparse", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(31)
    history, shelf = make_readers(20 * args.batch_size, 8)
    model = Recommender(BOOKS, SHELVES, sparse=args.sparse)
    optimizers = make_optimizers(model, 1e-3, args.sparse)

    started = time.perf_counter()
    steps = train(model, optimizers, history, shelf, args.epochs, args.batch_size)
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")
