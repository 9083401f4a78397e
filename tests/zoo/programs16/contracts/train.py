import argparse
import time
from dataclasses import dataclass

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

from data import Clauses


@dataclass
class RunConfig:
    save_steps: int = 2
    steps: int = 120
    batch_size: int = 2
    length: int = 16
    vocab_size: int = 3000
    width: int = 256


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.started


def build_model(cfg: RunConfig):
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=cfg.vocab_size,
            n_positions=cfg.length,
            n_embd=cfg.width,
            n_layer=3,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-steps", type=int, default=2)
    cfg = RunConfig(**vars(parser.parse_args()))
    torch.set_num_threads(1)
    torch.manual_seed(4)
    clock = Clock()
    trainer = Trainer(
        model=build_model(cfg),
        args=TrainingArguments(
            output_dir="contracts-run",
            max_steps=cfg.steps,
            per_device_train_batch_size=cfg.batch_size,
            learning_rate=5e-4,
            logging_steps=30,
            save_strategy="steps",
            save_steps=cfg.save_steps,
            save_total_limit=2,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Clauses(cfg.steps * cfg.batch_size, cfg.length, cfg.vocab_size),
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
