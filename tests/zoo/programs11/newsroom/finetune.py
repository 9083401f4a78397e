import argparse
import time

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from collators import COLLATORS
from data import Stories

VOCAB, MAX_LEN, DESKS, STEPS = 4000, 64, 7, 70


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collator", choices=sorted(COLLATORS), default="story")
    return parser.parse_args()


def build_model():
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=MAX_LEN,
        num_labels=DESKS,
    )
    return BertForSequenceClassification(config)


def main():
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(11)
    training = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        max_steps=STEPS,
        learning_rate=3e-4,
        optim="adamw_torch_fused",
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        remove_unused_columns=False,
        seed=11,
    )
    trainer = Trainer(
        model=build_model(),
        args=training,
        train_dataset=Stories(1200, VOCAB, MAX_LEN, DESKS),
        data_collator=COLLATORS[args.collator](MAX_LEN),
    )
    start = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
