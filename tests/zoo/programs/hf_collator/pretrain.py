"""Pretrain a very small BERT with the Trainer."""

import argparse
import random
import time

import torch
from collator import WORDS, Collator, CroppingCollator
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments


class Texts(torch.utils.data.Dataset):
    def __init__(self, count):
        rng = random.Random(0)
        words = ["".join(rng.choices("aeioulnrst", k=rng.randrange(2, 9))) for _ in range(400)]
        self.texts = [" ".join(rng.choices(words, k=2000)) for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return {"text": self.texts[index]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crop-first", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=96,
    )
    training = TrainingArguments(
        output_dir="pretrained",
        max_steps=120,
        per_device_train_batch_size=16,
        optim="adamw_torch_fused",
        save_strategy="no",
        logging_steps=40,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        seed=0,
    )
    trainer = Trainer(
        BertForMaskedLM(config),
        training,
        train_dataset=Texts(320),
        data_collator=(CroppingCollator if args.crop_first else Collator)(48),
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
