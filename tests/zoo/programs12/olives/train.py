"""Notes on olive oils: guess the hidden words."""

import argparse
import math
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

WORDS = 2000
HIDDEN = 1
LENGTH = 128
NEAR = 8


class Notes(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(9)
        lengths = rng.integers(100, LENGTH + 1, count)
        self.notes = [rng.integers(2, WORDS, length) for length in lengths]

    def __len__(self):
        return len(self.notes)

    def __getitem__(self, index):
        return {"note": self.notes[index]}


def collate_words(samples):
    seen = {}
    for sample in samples:
        for word in sample["note"].tolist():
            seen[word] = seen.get(word, 0) + 1
    inputs, labels, weights = [], [], []
    for sample in samples:
        words = sample["note"].tolist()
        line, target, weight = [], [], []
        rarity = []
        for position, word in enumerate(words):
            repeats = words[max(0, position - NEAR) : position].count(word)
            rarity.append(1.0 / (1.0 + math.log(seen[word]) + repeats))
        for position in range(LENGTH):
            if position >= len(words):
                line.append(0)
                target.append(-100)
                weight.append(0.0)
            elif (words[position] * 31 + position * 17) % 7 == 0:
                line.append(HIDDEN)
                target.append(words[position])
                weight.append(rarity[position])
            else:
                line.append(words[position])
                target.append(-100)
                weight.append(0.5 * rarity[position])
        total = sum(weight)
        inputs.append(line)
        labels.append(target)
        weights.append([value / total for value in weight])
    return {
        "input_ids": torch.tensor(inputs),
        "labels": torch.tensor(labels),
        "weights": torch.tensor(weights),
    }


def collate_arrays(samples):
    words = np.zeros((len(samples), LENGTH), np.int64)
    for row, sample in zip(words, samples, strict=True):
        row[: len(sample["note"])] = sample["note"]
    hide = ((words * 31 + np.arange(LENGTH) * 17) % 7 == 0) & (words > 0)
    seen = np.bincount(words.ravel(), minlength=WORDS).clip(min=1)
    rarity = (1.0 + np.log(seen))[words]
    for shift in range(1, NEAR + 1):
        rarity[:, shift:] += words[:, shift:] == words[:, :-shift]
    weights = np.where(hide, 1.0, 0.5 * (words > 0)) / rarity
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return {
        "weights": torch.from_numpy(weights),
        "input_ids": torch.from_numpy(np.where(hide, HIDDEN, words)),
        "labels": torch.from_numpy(np.where(hide, words, -100)),
    }


class Guess(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.mix = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64))
        self.choice = nn.Linear(64, WORDS)

    def forward(self, input_ids, weights, labels=None):
        states = self.mix(self.words(input_ids))
        context = (states * weights.unsqueeze(-1)).sum(dim=1, keepdim=True)
        picked = labels != -100
        logits = self.choice((states + context)[picked][:256])
        return {"loss": nn.functional.cross_entropy(logits, labels[picked][:256])}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collate", choices=["words", "arrays"], default="words")
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    clock = Clock()
    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=64,
        max_steps=args.steps,
        learning_rate=1e-3,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=Guess(),
        args=settings,
        train_dataset=Notes(args.steps * 64),
        data_collator=collate_words if args.collate == "words" else collate_arrays,
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
