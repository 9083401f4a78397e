import time
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments


@dataclass
class RunConfig:
    steps: int = 100
    batch_size: int = 8
    length: int = 64
    vocab_size: int = 1024
    width: int = 128


class Snippets(Dataset):
    def __init__(self, cfg: RunConfig, seed=6):
        generator = torch.Generator().manual_seed(seed)
        start = torch.randint(cfg.vocab_size, (cfg.steps * cfg.batch_size, 1), generator=generator)
        self.ids = (start + torch.arange(cfg.length) * 3) % cfg.vocab_size

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.started


def main():
    cfg = RunConfig()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=cfg.vocab_size,
            hidden_size=cfg.width,
            intermediate_size=3 * cfg.width,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=cfg.length,
        )
    )
    clock = Clock()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="autocomplete-run",
            max_steps=cfg.steps,
            per_device_train_batch_size=cfg.batch_size,
            learning_rate=1e-3,
            lr_scheduler_type="cosine",
            logging_steps=25,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Snippets(cfg),
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
