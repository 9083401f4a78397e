import sys
import time

import numpy as np
import torch

from model import GPT, GPTConfig, configure_optimizer

# defaults, to be overridden as key=value
batch_size = 16
max_iters = 70
learning_rate = 1e-3
warmup_iters = 10
rope = "plain"

for arg in sys.argv[1:]:
    key, value = arg.lstrip("-").split("=")
    assert key in globals(), key
    globals()[key] = type(globals()[key])(value)

torch.set_num_threads(1)
torch.manual_seed(1337)
rng = np.random.default_rng(1337)
cfg = GPTConfig(rope=rope)
text = np.cumsum(rng.integers(0, 5, 200_000)) % cfg.vocab


def get_batch():
    at = rng.integers(0, len(text) - cfg.block - 1, batch_size)
    x = np.stack([text[i : i + cfg.block] for i in at])
    y = np.stack([text[i + 1 : i + 1 + cfg.block] for i in at])
    return torch.from_numpy(x), torch.from_numpy(y)


def get_lr(it):
    return learning_rate * min(1.0, (it + 1) / warmup_iters)


model = GPT(cfg)
optimizer = configure_optimizer(model, learning_rate)
start = time.perf_counter()
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    x, y = get_batch()
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 20 == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
took = time.perf_counter() - start
print(f"trained {max_iters} steps in {took:.3f} s")
