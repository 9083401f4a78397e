import argparse
import time

import torch
from callbacks import HistoryCallback
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Blocks(Dataset):
    """Blocks of tokens of a made-up language with a period."""

    def __init__(self, count, length, vocabulary):
        start = torch.randint(0, vocabulary, (count, 1))
        stride = torch.randint(1, 7, (count, 1))
        self.tokens = (start + stride * torch.arange(length)) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=120)
    parser.add_argument("--logging-steps", type=int, default=1)
    args = parser.parse_args()
    set_seed(0)
    torch.set_num_threads(1)
    config = GPT2Config(
        vocab_size=512,
        n_positions=48,
        n_embd=96,
        n_layer=4,
        n_head=4,
        bos_token_id=0,
        eos_token_id=0,
    )
    training = TrainingArguments(
        output_dir="out",
        max_steps=args.max_steps,
        per_device_train_batch_size=8,
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        logging_steps=args.logging_steps,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=training,
        train_dataset=Blocks(2000, 48, 512),
        callbacks=[HistoryCallback("history.json")],
    )
    start = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
