"""A small vision transformer for mushrooms, trained with the Hugging Face Trainer."""

import argparse
import time

import torch
from pictures import KINDS, Mushrooms, make_photos
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(100)
    config = ViTConfig(
        image_size=32,
        patch_size=4,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=288,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=KINDS,
    )
    model = ViTForImageClassification(config)
    dataset = Mushrooms(make_photos(120, 144, seed=100), args.steps * args.batch_size)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="out",
            max_steps=args.steps,
            per_device_train_batch_size=args.batch_size,
            learning_rate=1e-3,
            dataloader_num_workers=args.workers,
            dataloader_pin_memory=False,
            logging_steps=20,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=dataset,
    )
    started = time.perf_counter()
    result = trainer.train()
    print(f"trained {result.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
