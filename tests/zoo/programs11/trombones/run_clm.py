import time

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

from data import Melodies


def build_model():
    config = GPT2Config(
        vocab_size=256,
        n_positions=96,
        n_embd=128,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(25)
    training = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        max_steps=75,
        learning_rate=5e-4,
        optim="adamw_torch_fused",
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        seed=25,
    )
    trainer = Trainer(
        model=build_model(),
        args=training,
        train_dataset=Melodies(640, 96, 256),
        data_collator=default_data_collator,
    )
    start = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
