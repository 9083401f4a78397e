"""A small GPT-2 on the log of a lemon press, with the Hugging Face Trainer."""

import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

EVENTS = 256
LENGTH = 64


class PressLog(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.events = (
            torch.randint(1, 6, (count, LENGTH), generator=generator).cumsum(dim=1) % EVENTS
        )

    def __len__(self):
        return len(self.events)

    def __getitem__(self, index):
        return {"input_ids": self.events[index], "labels": self.events[index]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=72)
    parser.add_argument("--batch-size", type=int, default=18)
    args = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(230)
    config = GPT2Config(
        vocab_size=EVENTS,
        n_positions=LENGTH,
        n_embd=128,
        n_layer=2,
        n_head=4,
        activation_function="gelu",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            output_dir="out",
            max_steps=args.max_steps,
            per_device_train_batch_size=args.batch_size,
            learning_rate=1e-3,
            logging_steps=24,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            use_cpu=True,
        ),
        train_dataset=PressLog(args.max_steps * args.batch_size, seed=231),
    )
    started = time.perf_counter()
    result = trainer.train()
    print(f"trained {result.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
