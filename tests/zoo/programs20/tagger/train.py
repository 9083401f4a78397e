"""Question 3, Transformers: a name for each word of a sentence."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

LONGEST = 128


class Tagger(nn.Module):
    def __init__(self, words=5000, width=64, tags=9):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.near = nn.Conv1d(width, 128, 3, padding=1)
        self.tag = nn.Linear(128, tags)

    def forward(self, input_ids, attention_mask, labels):
        hidden = self.embed(input_ids) * attention_mask[..., None]
        hidden = torch.relu(self.near(hidden.transpose(1, 2))).transpose(1, 2)
        scores = self.tag(hidden)
        loss = nn.functional.cross_entropy(
            scores.flatten(0, 1), labels.flatten(), ignore_index=-100
        )
        return {"loss": loss, "logits": scores}


def sentences(count):
    rng = np.random.default_rng(3)
    made = []
    for _ in range(count):
        length = int(rng.integers(80, LONGEST + 1))
        made.append({"ids": rng.integers(1, 5000, length), "tags": rng.integers(0, 9, length)})
    return made


def pad_words(samples):
    ids = torch.zeros(len(samples), LONGEST, dtype=torch.long)
    mask = torch.zeros(len(samples), LONGEST, dtype=torch.long)
    labels = torch.full((len(samples), LONGEST), -100)
    for row, sample in enumerate(samples):
        for column, (word, tag) in enumerate(zip(sample["ids"], sample["tags"])):
            ids[row, column] = int(word)
            mask[row, column] = 1
            labels[row, column] = int(tag)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def pad_sentences(samples):
    lengths = np.array([len(sample["ids"]) for sample in samples])
    mask = np.arange(LONGEST) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    labels = np.full(mask.shape, -100)
    ids[mask] = np.concatenate([sample["ids"] for sample in samples])
    labels[mask] = np.concatenate([sample["tags"] for sample in samples])
    batch = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "labels": labels}
    return {name: torch.from_numpy(array) for name, array in batch.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pad", choices=["words", "sentences"], default="words")
    args = parser.parse_args()
    torch.set_num_threads(1)
    settings = TrainingArguments(
        output_dir="out",
        max_steps=args.steps,
        per_device_train_batch_size=32,
        learning_rate=1e-3,
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        seed=3,
    )
    trainer = Trainer(
        model=Tagger(),
        args=settings,
        train_dataset=sentences(640),
        data_collator=pad_words if args.pad == "words" else pad_sentences,
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
