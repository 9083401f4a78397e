import argparse
import math
import time

import torch
from recipes import Recipes
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
    set_seed,
)


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.elapsed = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--block", type=int, default=48)
    args = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(5)
    train = Recipes(50 * args.batch_size, args.block, seed=5)
    held_out = Recipes(3 * args.batch_size, args.block, seed=6)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(train.index),
            n_positions=args.block,
            n_embd=128,
            n_layer=3,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
            use_cache=False,
        )
    )
    clock = Clock()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="lm",
            max_steps=args.max_steps,
            per_device_train_batch_size=args.batch_size,
            per_device_eval_batch_size=args.batch_size,
            learning_rate=1e-3,
            warmup_steps=10,
            logging_steps=25,
            eval_strategy="steps",
            eval_steps=50,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=train,
        eval_dataset=held_out,
        data_collator=default_data_collator,
        callbacks=[clock],
    )
    trainer.train()
    torch.save(model.state_dict(), "lm.pt")
    final = trainer.state.log_history
    losses = [entry["eval_loss"] for entry in final if "eval_loss" in entry]
    print(f"perplexity {math.exp(losses[-1]):.2f}")
    print(f"trained {trainer.state.global_step} steps in {clock.elapsed:.3f} s")


if __name__ == "__main__":
    main()
