import argparse
import time

import torch
from collators import COLLATORS
from notes import PAD, VOCABULARY, Notes
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

LENGTH = 96


def build_model():
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=160,
        max_position_embeddings=LENGTH,
        pad_token_id=PAD,
    )
    return BertForMaskedLM(config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collator", choices=sorted(COLLATORS), default="words")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(17)
    notes = Notes(options.steps * options.batch_size, LENGTH, seed=17)
    arguments = TrainingArguments(
        output_dir="clinlm-out",
        max_steps=options.steps,
        per_device_train_batch_size=options.batch_size,
        learning_rate=1e-3,
        warmup_steps=10,
        dataloader_num_workers=1,
        dataloader_persistent_workers=True,
        dataloader_pin_memory=False,
        logging_steps=40,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=build_model(),
        args=arguments,
        train_dataset=notes,
        data_collator=COLLATORS[options.collator](LENGTH),
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
