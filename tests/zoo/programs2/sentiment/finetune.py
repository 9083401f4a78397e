"""Fine-tune a small BERT on made-up reviews."""

import gc
import sys
import time

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class FreeMemory(TrainerCallback):
    """Without this the process was killed after some hours."""

    def __init__(self, every):
        self.every = every

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0:
            gc.collect()


class Reviews(torch.utils.data.Dataset):
    def __init__(self, count, length=48, vocabulary=1000):
        self.tokens = torch.randint(10, vocabulary, (count, length))
        self.tokens[:, 0] = 1
        self.labels = (self.tokens < vocabulary // 2).float().mean(1).gt(0.5).long()
        self.mask = torch.ones(length, dtype=torch.long)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "input_ids": self.tokens[index],
            "attention_mask": self.mask,
            "labels": self.labels[index],
        }


def main():
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    set_seed(1)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=48,
    )
    model = BertForSequenceClassification(config)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="finetuned",
            num_train_epochs=1,
            per_device_train_batch_size=16,
            learning_rate=3e-4,
            warmup_steps=20,
            logging_steps=40,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Reviews(1600),
        callbacks=[FreeMemory(every)],
    )
    begin = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
