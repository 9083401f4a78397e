"""Topic classification with the Hugging Face Trainer."""

import argparse
import json
import time

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

torch.set_num_threads(1)


class Posts(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(5, 800, (n, 48), generator=g)
        self.labels = torch.randint(0, 20, (n,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class WeightWatch(TrainerCallback):
    """Histograms of all weights, for the dashboard."""

    def __init__(self, path, every):
        self.file, self.every = open(path, "w"), every

    def on_train_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every == 0:
            self.write_histograms(state.global_step, model)

    def write_histograms(self, step, model):
        record = {"step": step}
        for name, p in model.named_parameters():
            counts, edges = np.histogram(p.detach().numpy(), bins=64)
            record[name] = {"counts": counts.tolist(), "edges": edges.tolist()}
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def on_train_end(self, args, state, control, **kwargs):
        self.took = time.perf_counter() - self.began


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--watch-every", type=int, default=1)
    a = ap.parse_args()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=800,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
        num_labels=20,
    )
    watch = WeightWatch("weights.jsonl", a.watch_every)
    targs = TrainingArguments(
        output_dir="out",
        max_steps=a.steps,
        per_device_train_batch_size=16,
        learning_rate=2e-4,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        logging_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=targs,
        train_dataset=Posts(a.steps * 16),
        callbacks=[watch],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {watch.took:.3f} s")
