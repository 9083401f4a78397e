import argparse
import time
from dataclasses import dataclass

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from data import NORMALIZERS, HashTokenizer, TicketDataset, make_glossary, make_tickets


@dataclass
class RunConfig:
    normalizer: str = "rules"
    glossary_size: int = 480
    vocab_size: int = 2000
    length: int = 48
    batch_size: int = 16
    steps: int = 120
    seed: int = 5


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--normalizer", choices=sorted(NORMALIZERS), default="rules")
    cfg = RunConfig(**vars(parser.parse_args()))

    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    glossary = make_glossary(cfg.glossary_size, cfg.seed)
    tickets = make_tickets(cfg.steps * cfg.batch_size, glossary, cfg.seed + 1)
    dataset = TicketDataset(
        tickets, NORMALIZERS[cfg.normalizer](glossary), HashTokenizer(cfg.vocab_size, cfg.length)
    )
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=cfg.vocab_size,
            hidden_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=192,
            max_position_embeddings=cfg.length,
            num_labels=6,
        )
    )
    clock = Clock()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out",
            max_steps=cfg.steps,
            per_device_train_batch_size=cfg.batch_size,
            learning_rate=3e-4,
            dataloader_num_workers=1,
            logging_steps=40,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=dataset,
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
