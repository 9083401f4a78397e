import json
import sys
import time

import torch
from model import TinyLM
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "vocabulary": 128,
    "width": 96,
    "heads": 4,
    "hidden": [192, 192, 4096, 192],
    "batch": 8,
    "length": 64,
    "steps": 100,
}


def batches(config):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(
        0,
        config["vocabulary"],
        (config["steps"] * config["batch"], config["length"] + 1),
        generator=generator,
    )
    ids[:, 1::2] = (ids[:, ::2][:, : ids[:, 1::2].shape[1]] * 3 + 1) % config["vocabulary"]
    return DataLoader(TensorDataset(ids), batch_size=config["batch"])


def train(config):
    torch.manual_seed(0)
    model = TinyLM(config["vocabulary"], config["width"], config["heads"], config["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for (ids,) in batches(config):
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    config = {**CONFIG, **json.loads(sys.argv[1])} if len(sys.argv) > 1 else CONFIG
    begin = time.perf_counter()
    loss = train(config)
    print(f"loss {loss:.3f}")
    print(f"trained {config['steps']} steps in {time.perf_counter() - begin:.3f} s")
