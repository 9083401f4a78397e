import time

import numpy as np
from trainer import Trainer

STEPS = 180


def data():
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = rng.normal(size=(256, 64)).astype(np.float32)
        yield x, np.sin(x.sum(1, keepdims=True))


trainer = Trainer([64, 768, 768, 1], peak=0.1, every=10)
start = time.perf_counter()
print(f"loss {trainer.fit(data()):.4f}")
print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")
