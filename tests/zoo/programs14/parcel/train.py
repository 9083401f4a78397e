"""Parcels are routed by the text on them: a small BERT and the Trainer."""

import argparse
import random
import re
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

WORD = re.compile(r"[a-z]+")
LENGTH = 48


def made_up_words(count, rng):
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = set()
    while len(words) < count:
        words.add("".join(rng.choices(letters, k=rng.randint(4, 9))))
    return sorted(words)


class ListVocabulary:
    def __init__(self, words):
        self.words = ["[pad]", "[unk]", *words]

    def lookup(self, word):
        return self.words.index(word) if word in self.words else 1


class MapVocabulary:
    def __init__(self, words):
        self.ids = {word: i for i, word in enumerate(["[pad]", "[unk]", *words])}

    def lookup(self, word):
        return self.ids.get(word, 1)


class Labels(Dataset):
    def __init__(self, words, vocabulary, count, rng):
        self.vocabulary = vocabulary
        self.texts = [" ".join(rng.choices(words, k=LENGTH - 4)).title() for _ in range(count)]
        self.routes = [rng.randrange(4) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def encode(self, text):
        ids = [self.vocabulary.lookup(word) for word in WORD.findall(text.lower())]
        mask = [1] * len(ids)
        while len(ids) < LENGTH:
            ids.append(0)
            mask.append(0)
        return ids, mask

    def __getitem__(self, index):
        ids, mask = self.encode(self.texts[index])
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": self.routes[index],
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", choices=["list", "map"], default="list")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)

    rng = random.Random(7)
    words = made_up_words(3600, rng)
    vocabulary = {"list": ListVocabulary, "map": MapVocabulary}[args.vocabulary](words)
    dataset = Labels(words, vocabulary, args.steps * 16, rng)
    config = BertConfig(
        vocab_size=3602,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=64,
        num_labels=4,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="out",
            per_device_train_batch_size=16,
            max_steps=args.steps,
            learning_rate=1e-4,
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=7,
        ),
        train_dataset=dataset,
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
