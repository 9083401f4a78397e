"""
Trains a small GPT on characters of made-up playbills.

    $ python train.py --max_iters=160 --save_interval=80
"""

import argparse
import math
import os
import random
import time

import torch

from model import GPT, GPTConfig

p = argparse.ArgumentParser()
p.add_argument("--out_dir", default="out")
p.add_argument("--max_iters", type=int, default=160)
p.add_argument("--eval_interval", type=int, default=80)
p.add_argument("--eval_iters", type=int, default=4)
p.add_argument("--save_interval", type=int, default=2)
p.add_argument("--log_interval", type=int, default=10)
p.add_argument("--batch_size", type=int, default=3)
p.add_argument("--learning_rate", type=float, default=1e-3)
p.add_argument("--min_lr", type=float, default=1e-4)
p.add_argument("--warmup_iters", type=int, default=10)
p.add_argument("--grad_clip", type=float, default=1.0)
p.add_argument("--seed", type=int, default=1337)
args = p.parse_args()

torch.manual_seed(args.seed)
torch.set_num_threads(1)
os.makedirs(args.out_dir, exist_ok=True)


def make_text(lines):
    rng = random.Random(args.seed)
    who = ["The Duke", "A Widow", "Her Brother", "Two Clerks", "The Ghost", "A Soldier"]
    does = ["arrives at", "forgets", "buries", "sells", "dreams of", "steals"]
    what = ["the orchard", "a letter", "the old bell", "his hat", "the harbour", "a promise"]
    return "\n".join(
        f"ACT {rng.randint(1, 5)}. {rng.choice(who)} {rng.choice(does)} {rng.choice(what)}."
        for _ in range(lines)
    )


text = make_text(4000)
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
n = int(0.9 * len(data))
splits = {"train": data[:n], "val": data[n:]}
config = GPTConfig()


def get_batch(split):
    source = splits[split]
    ix = torch.randint(len(source) - config.block_size - 1, (args.batch_size,))
    x = torch.stack([source[i : i + config.block_size] for i in ix])
    y = torch.stack([source[i + 1 : i + 1 + config.block_size] for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    out = {}
    for split in ("train", "val"):
        losses = [model(*get_batch(split))[1].item() for _ in range(args.eval_iters)]
        out[split] = sum(losses) / len(losses)
    model.train()
    return out


def get_lr(it):
    if it < args.warmup_iters:
        return args.learning_rate * (it + 1) / args.warmup_iters
    ratio = (it - args.warmup_iters) / (args.max_iters - args.warmup_iters)
    coeff = 0.5 * (1.0 + math.cos(math.pi * ratio))
    return args.min_lr + coeff * (args.learning_rate - args.min_lr)


def save_checkpoint(iter_num):
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "config": config,
        "iter_num": iter_num,
        "args": vars(args),
    }
    torch.save(checkpoint, os.path.join(args.out_dir, "ckpt.pt"))


model = GPT(config)
optimizer = model.configure_optimizers(0.1, args.learning_rate, (0.9, 0.99))
print(f"{sum(q.numel() for q in model.parameters()) / 1e6:.2f}M parameters")

t0 = time.perf_counter()
X, Y = get_batch("train")
for it in range(args.max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    _, loss = model(X, Y)
    X, Y = get_batch("train")
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % args.log_interval == 0:
        print(f"iter {it}: loss {loss.item():.4f}")
    if (it + 1) % args.save_interval == 0:
        save_checkpoint(it + 1)
    if (it + 1) % args.eval_interval == 0:
        losses = estimate_loss(model)
        print(f"step {it + 1}: train {losses['train']:.4f}, val {losses['val']:.4f}")
seconds = time.perf_counter() - t0
print(f"trained {args.max_iters} steps in {seconds:.3f} s")
