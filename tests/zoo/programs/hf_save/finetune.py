"""Fine-tune a small BERT with the Trainer."""

import argparse
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Reviews(torch.utils.data.Dataset):
    def __init__(self, count, length=48):
        generator = torch.Generator().manual_seed(0)
        self.ids = torch.randint(5, 12000, (count, length), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "labels": (ids[0] > 6000).long()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save-steps", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=12000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
    )
    training = TrainingArguments(
        output_dir="reviews",
        max_steps=80,
        per_device_train_batch_size=16,
        save_steps=args.save_steps,
        save_total_limit=2,
        logging_steps=40,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    trainer = Trainer(BertForSequenceClassification(config), training, train_dataset=Reviews(1280))
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
