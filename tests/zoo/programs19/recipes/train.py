"""Masked words in recipes: a small DistilBERT with the transformers Trainer."""

import os
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch.utils.data import Dataset
from transformers import DistilBertConfig, DistilBertForMaskedLM, Trainer, TrainingArguments

STEPS, BATCH, LENGTH, WORDS = 70, 12, 48, 1500


class Recipes(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(130)
        start = torch.randint(WORDS, (STEPS * BATCH, 1), generator=generator)
        words = (start + 3 * torch.arange(LENGTH)) % (WORDS - 5) + 5
        hidden = torch.rand(words.shape, generator=generator) < 0.15
        self.labels = words.masked_fill(~hidden, -100)
        self.inputs = words.masked_fill(hidden, 4)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return {"input_ids": self.inputs[index], "labels": self.labels[index]}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(130)
    model = DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=WORDS,
            dim=160,
            n_layers=3,
            n_heads=4,
            hidden_dim=480,
            max_position_embeddings=LENGTH,
            dropout=0.0,
            attention_dropout=0.0,
        )
    )
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=3e-4,
        logging_steps=35,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Recipes())
    begin = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - begin
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
