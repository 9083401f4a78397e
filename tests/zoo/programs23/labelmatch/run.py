import argparse
import time

import torch
from corpus import VOCABULARY, Questions, make_topics
from matching import TopicMatcher
from transformers import Trainer, TrainingArguments, default_data_collator, set_seed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--topics", type=int, default=64)
    parser.add_argument("--steps", type=int, default=170)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--index-topics", action="store_true")
    args = parser.parse_args()

    set_seed(17)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(17)
    topics = make_topics(args.topics, 24, generator)
    questions = Questions(topics, args.steps * args.batch_size // 2, 24, generator)
    model = TopicMatcher(topics, VOCABULARY, index=args.index_topics)
    training = TrainingArguments(
        output_dir="out",
        max_steps=args.steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=5e-4,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        logging_steps=30,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model, args=training, train_dataset=questions, data_collator=default_data_collator
    )
    start = time.perf_counter()
    trainer.train()
    elapsed = time.perf_counter() - start
    torch.save(model.state_dict(), "matcher.pt")
    print(f"trained {trainer.state.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
