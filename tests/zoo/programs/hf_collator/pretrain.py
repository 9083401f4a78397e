"""Pretrain a very small BERT with the Trainer."""

import argparse
import time

import torch
from collator import MaskingCollator, TensorMaskingCollator
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __init__(self, count, vocabulary):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(100, 180, (count,), generator=generator).tolist()
        self.rows = [torch.randint(2, vocabulary, (n,), generator=generator) for n in lengths]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensor-collator", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = 300
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    training = TrainingArguments(
        output_dir="pretrained",
        max_steps=100,
        per_device_train_batch_size=16,
        save_strategy="no",
        logging_steps=50,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        seed=0,
    )
    collator = (TensorMaskingCollator if args.tensor_collator else MaskingCollator)(vocabulary)
    trainer = Trainer(
        BertForMaskedLM(config),
        training,
        train_dataset=Sentences(1600, vocabulary),
        data_collator=collator,
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
