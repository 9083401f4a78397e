import argparse
import time

import torch
from tokens import Pairs, recipes
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

LENGTH = 64


def pad(rows):
    ids = torch.zeros(len(rows), LENGTH, dtype=torch.long)
    for k, row in enumerate(rows):
        ids[k, : len(row)] = torch.tensor(row[:LENGTH])
    return {"input_ids": ids, "labels": ids.masked_fill(ids == 0, -100)}


class TextCollator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, texts):
        return pad([self.tokenizer.encode(t) for t in texts])


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--encode", choices=["collator", "once"], default="collator")
    parser.add_argument("--batch", type=int, default=12)
    return parser.parse_args()


def main():
    args = get_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    texts = recipes(320, 320)
    tokenizer = Pairs(texts, 60)
    if args.encode == "once":
        data, collator = Rows([tokenizer.encode(t)[:LENGTH] for t in texts]), pad
    else:
        data, collator = Rows(texts), TextCollator(tokenizer)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=128, n_positions=LENGTH, n_embd=96, n_layer=2, n_head=4)
    )
    arguments = TrainingArguments(
        output_dir="run",
        num_train_epochs=3,
        per_device_train_batch_size=args.batch,
        learning_rate=5e-4,
        logging_steps=50,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, data_collator=collator)
    begin = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
