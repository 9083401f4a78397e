import json
import random

import numpy as np
import torch

DEFAULTS = {
    "seed": 13,
    "threads": 24,
    "latent": 64,
    "channels": 64,
    "batch": 24,
    "images": 768,
    "epochs": 3,
    "lr": 2e-4,
}


def load_settings(overrides):
    settings = dict(DEFAULTS)
    for item in overrides:
        key, value = item.split("=")
        settings[key] = json.loads(value)
    return settings


def prepare_machine(settings):
    random.seed(settings["seed"])
    np.random.seed(settings["seed"])
    torch.manual_seed(settings["seed"])
    torch.set_num_threads(settings["threads"])
