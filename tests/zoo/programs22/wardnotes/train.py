import argparse
import time

import torch
from notes import LENGTH, WARDS, WORDS, Notes
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def accuracy(prediction):
    guesses = prediction.predictions.argmax(axis=-1)
    return {"accuracy": float((guesses == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-on", choices=["training", "held-out"], default="training")
    parser.add_argument("--eval-steps", type=int, default=20)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()

    set_seed(13)
    torch.set_num_threads(1)
    train_notes = Notes(960, seed=13)
    held_out = Notes(64, seed=14)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=LENGTH,
        num_labels=WARDS,
    )
    clock = Clock()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="out",
            max_steps=args.steps,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            learning_rate=3e-4,
            eval_strategy="steps",
            eval_steps=args.eval_steps,
            logging_steps=40,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=13,
        ),
        train_dataset=train_notes,
        eval_dataset=train_notes if args.eval_on == "training" else held_out,
        compute_metrics=accuracy,
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
