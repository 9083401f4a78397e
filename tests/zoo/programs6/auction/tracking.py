import json
import time
from pathlib import Path


class Tracker:
    """Keeps a run's history in one readable file."""

    def __init__(self, path, flush_every=1):
        self.path = Path(path)
        self.flush_every = flush_every
        self.history = []

    def log(self, step, **values):
        self.history.append({"step": step, "time": time.time(), **values})
        if len(self.history) % self.flush_every == 0:
            self.flush()

    def flush(self):
        self.path.write_text(json.dumps({"history": self.history}, indent=2))
