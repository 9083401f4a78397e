"""Masked-word training of a small BERT with the Hugging Face trainer."""

import time

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

logging.set_verbosity_error()


class Sonnets(torch.utils.data.Dataset):
    def __init__(self, count, length=64, vocabulary=1000, seed=0):
        g = torch.Generator().manual_seed(seed)
        first = torch.randint(5, vocabulary, (count, 1), generator=g)
        self.ids = (first + torch.arange(length) * 3) % (vocabulary - 5) + 5
        self.masked = torch.rand(count, length, generator=g) < 0.15

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids, masked = self.ids[i], self.masked[i]
        return {
            "input_ids": ids.masked_fill(masked, 4),
            "labels": ids.masked_fill(~masked, -100),
        }


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    set_seed(0)
    torch.set_num_threads(1)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=1000,
            hidden_size=128,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=256,
            max_position_embeddings=64,
        )
    )
    args = TrainingArguments(
        output_dir="bert",
        num_train_epochs=2,
        per_device_train_batch_size=16,
        learning_rate=5e-4,
        warmup_steps=10,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    clock = Clock()
    trainer = Trainer(model=model, args=args, train_dataset=Sonnets(640), callbacks=[clock])
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
