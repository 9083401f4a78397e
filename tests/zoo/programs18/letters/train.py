"""Masked letters: a small BERT from scratch."""

import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments

VOCAB, LENGTH, MASK = 96, 64, 1


class Letters(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(0)
        self.labels = torch.randint(4, VOCAB, (count, LENGTH), generator=g)
        hidden = torch.rand(count, LENGTH, generator=g) < 0.15
        self.ids = self.labels.masked_fill(hidden, MASK)
        self.labels = self.labels.masked_fill(~hidden, -100)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


def collate(samples):
    return {
        "input_ids": torch.stack([s["input_ids"] for s in samples]),
        "labels": torch.stack([s["labels"] for s in samples]),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=VOCAB,
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=512,
            max_position_embeddings=LENGTH,
        )
    )
    arguments = TrainingArguments(
        output_dir="letters-out",
        max_steps=90,
        per_device_train_batch_size=16,
        learning_rate=3e-4,
        logging_steps=45,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Letters(1440), data_collator=collate
    )
    start = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - start:.3f} s")
