"""A small training with the Trainer of transformers, on synthetic text.

stepwatch run examples/python/hf_trainer.py             # unchanged
python examples/python/hf_trainer.py --callback         # with stepwatch.hf.Callback
"""

from __future__ import annotations

import argparse
import tempfile

import stepwatch
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Random words; the label is whether the first one is in the first half of the dictionary."""

    def __init__(self, count: int) -> None:
        self.words = torch.randint(0, 1000, (count, 32))

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        words = self.words[index]
        return {"input_ids": words, "labels": (words[0] < 500).long()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--callback", action="store_true", help="record with the callback")
    options = parser.parse_args()
    config = BertConfig(
        vocab_size=1000,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
    )
    callback = stepwatch.hf.Callback(name="hf") if options.callback else None
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=8,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
        )
        Trainer(
            BertForSequenceClassification(config),
            arguments,
            train_dataset=Sentences(400),
            callbacks=[callback] if callback else [],
        ).train()
    if callback and callback.run:
        print(callback.run.report())


if __name__ == "__main__":
    main()
