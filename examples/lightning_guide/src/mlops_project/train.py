"""Train a small image classifier with Lightning, and profile it when asked.

python src/mlops_project/train.py profiling.enabled=true
python src/mlops_project/train.py profiling.enabled=true model=resnet data.subsample_percentage=0.1
ENABLE_PROFILING=true python src/mlops_project/train.py

Settings are in configs/config.yaml. Without Hydra settings.py reads the same files and overrides.
"""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from stepwatch.compat.lightning_guide import ProfilerCallback

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mlops_project.data import Images
from mlops_project.model import MODELS

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def train(config: dict[str, Any], overrides: list[str]) -> None:
    """Train the model that is configured; ``overrides`` are those that were typed."""
    # What Lightning says about itself is not what this program has to say.
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    torch.set_num_threads(config["training"]["threads"])
    pl.seed_everything(config["seed"], verbose=False)
    options = dict(config["model"])
    name = options.pop("name")
    model = MODELS[name](
        **options,
        classes=config["data"]["classes"],
        learning_rate=config["training"]["learning_rate"],
    )
    profiler = ProfilerCallback.from_config(
        config["profiling"], model_name=name, overrides=overrides
    )
    trainer = pl.Trainer(
        max_epochs=config["training"]["max_epochs"],
        callbacks=[] if profiler is None else [profiler],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, Images(**config["data"]))
    accuracy = float(trainer.callback_metrics["val_accuracy"])
    print(f"{name}: accuracy {accuracy:.3f} after {trainer.global_step} steps")


def main() -> None:
    """Read the configuration, by Hydra where it is installed."""
    try:
        import hydra
        from hydra.core.hydra_config import HydraConfig
        from omegaconf import OmegaConf
    except ImportError:
        from mlops_project.settings import load

        train(load(CONFIGS, sys.argv[1:]), sys.argv[1:])
        return

    def start(config: Any) -> None:
        plain: Any = OmegaConf.to_container(config, resolve=True)
        train(plain, list(HydraConfig.get().overrides.task))

    hydra.main(version_base=None, config_path=str(CONFIGS), config_name="config")(start)()


if __name__ == "__main__":
    main()
