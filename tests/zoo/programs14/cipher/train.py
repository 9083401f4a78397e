"""Masked letters of a substitution cipher, with a small DistilBERT."""

import time

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForMaskedLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

LETTERS, MASK = 40, 41


class Messages(Dataset):
    def __init__(self, count, length=40, seed=0):
        gen = torch.Generator().manual_seed(seed)
        start = torch.randint(LETTERS, (count, 1), generator=gen)
        step = torch.randint(1, 4, (count, 1), generator=gen)
        self.plain = (start + step * torch.arange(length)) % LETTERS
        self.hidden = torch.rand(count, length, generator=gen) < 0.15

    def __len__(self):
        return len(self.plain)

    def __getitem__(self, i):
        plain, hidden = self.plain[i], self.hidden[i]
        return {
            "input_ids": plain.masked_fill(hidden, MASK),
            "labels": plain.masked_fill(~hidden, -100),
        }


class Report(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        print(f"step {state.global_step}: eval loss {metrics['eval_loss']:.4f}")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(19)
    config = DistilBertConfig(
        vocab_size=48,
        dim=128,
        hidden_dim=512,
        n_layers=2,
        n_heads=4,
        max_position_embeddings=40,
        dropout=0.0,
        attention_dropout=0.0,
    )
    arguments = TrainingArguments(
        output_dir="out",
        num_train_epochs=2,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        warmup_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=30,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=19,
    )
    trainer = Trainer(
        model=DistilBertForMaskedLM(config),
        args=arguments,
        train_dataset=Messages(960, seed=1),
        eval_dataset=Messages(128, seed=2),
        callbacks=[Report()],
    )
    begin = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - begin
    trainer.save_model("final")
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
