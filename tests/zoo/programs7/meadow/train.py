"""Which grasses grow together? A BERT-like model of plot surveys with the Hugging Face Trainer."""

import time

import torch
import transformers
from transformers import DistilBertConfig, DistilBertForMaskedLM, Trainer, TrainingArguments

transformers.logging.set_verbosity_error()
SPECIES, MASK = 800, 4


class Surveys(torch.utils.data.Dataset):
    def __init__(self, count=1200, length=40):
        g = torch.Generator().manual_seed(55)
        self.plots = torch.randint(5, SPECIES, (count, length), generator=g)
        self.hidden = torch.rand(count, length, generator=g) < 0.15

    def __len__(self):
        return len(self.plots)

    def __getitems__(self, rows):
        return rows

    def batch(self, rows):
        plots, hidden = self.plots[rows], self.hidden[rows]
        return {
            "input_ids": plots.masked_fill(hidden, MASK),
            "labels": plots.masked_fill(~hidden, -100),
        }


def main():
    torch.set_num_threads(1)
    transformers.set_seed(3)
    surveys = Surveys()
    model = DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=SPECIES,
            dim=160,
            n_layers=2,
            n_heads=4,
            hidden_dim=480,
            max_position_embeddings=64,
        )
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="meadow-out",
            max_steps=150,
            per_device_train_batch_size=12,
            learning_rate=5e-4,
            optim="adamw_torch_fused",
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
        ),
        train_dataset=surveys,
        data_collator=surveys.batch,
    )
    clock = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - clock
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
