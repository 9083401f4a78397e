"""A small language model on abstracts, with the Trainer of transformers."""

import time

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Blocks(Dataset):
    """Tokens in one tensor, cut into blocks."""

    def __init__(self, n, length=64, n_words=1000, seed=0):
        g = torch.Generator().manual_seed(seed)
        first = torch.randint(n_words, (n, 1), generator=g)
        jump = torch.randint(1, 9, (n, 1), generator=g)
        self.tokens = (first + jump * torch.arange(length)) % n_words

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.tokens[i]}


def main():
    set_seed(0)
    torch.set_num_threads(1)
    config = GPT2Config(
        vocab_size=1000, n_positions=64, n_embd=128, n_layer=2, n_head=4, use_cache=False,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    trainer = Trainer(
        GPT2LMHeadModel(config),
        TrainingArguments(
            "out",
            num_train_epochs=2,
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            logging_steps=30,
            eval_strategy="epoch",
            save_strategy="epoch",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Blocks(960),
        eval_dataset=Blocks(96, seed=1),
    )
    start = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
