import json
from pathlib import Path

from transformers import TrainerCallback


class HistoryCallback(TrainerCallback):
    """Keep what was logged, with the state of every weight, in a file for the notebook."""

    def __init__(self, path):
        self.path = Path(path)
        self.history = []

    def on_log(self, args, state, control, model=None, logs=None, **kwargs):
        entry = {"step": state.global_step, **(logs or {})}
        for name, weight in model.named_parameters():
            entry[f"{name}/mean"] = weight.mean().item()
            entry[f"{name}/std"] = weight.std().item()
            entry[f"{name}/largest"] = weight.abs().max().item()
        self.history.append(entry)
        self.path.write_text(json.dumps(self.history, indent=2))
