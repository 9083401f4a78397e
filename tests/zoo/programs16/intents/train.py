import argparse
import time
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from optim import make_optimizer


@dataclass
class RunConfig:
    optimizer: str = "paper"
    vocab_size: int = 6000
    length: int = 24
    intents: int = 20
    batch_size: int = 8
    steps: int = 120
    learning_rate: float = 2e-4


class Utterances(Dataset):
    def __init__(self, cfg: RunConfig, seed=7):
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(
            1, cfg.vocab_size, (cfg.steps * cfg.batch_size, cfg.length), generator=generator
        )
        self.labels = self.ids[:, 0] % cfg.intents

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.labels[index]}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["paper", "library"], default="paper")
    cfg = RunConfig(**vars(parser.parse_args()))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistilBertForSequenceClassification(
        DistilBertConfig(
            vocab_size=cfg.vocab_size,
            dim=256,
            hidden_dim=768,
            n_layers=2,
            n_heads=4,
            max_position_embeddings=cfg.length,
            num_labels=cfg.intents,
        )
    )
    clock = Clock()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out",
            max_steps=cfg.steps,
            per_device_train_batch_size=cfg.batch_size,
            lr_scheduler_type="constant",
            logging_steps=40,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Utterances(cfg),
        optimizers=(make_optimizer(cfg.optimizer, model, cfg.learning_rate), None),
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
