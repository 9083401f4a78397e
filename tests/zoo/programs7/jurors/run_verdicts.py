"""Fine-tune a small BERT to predict verdicts from summaries of cases."""

import argparse
import os
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
import transformers
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()


class Cases(Dataset):
    def __init__(self, count, seed):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, 2000, (count, 48), generator=g)
        self.labels = (self.ids[:, 3] > 1000).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=120)
    parser.add_argument("--eval-steps", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.set_seed(10)
    config = BertConfig(
        vocab_size=2000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
        num_labels=2,
    )
    training = TrainingArguments(
        output_dir="out",
        max_steps=args.max_steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        eval_strategy="steps",
        eval_steps=args.eval_steps,
        save_strategy="no",
        logging_steps=40,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=3e-4,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training,
        train_dataset=Cases(1600, 1),
        eval_dataset=Cases(160, 2),
        compute_metrics=accuracy,
    )
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
