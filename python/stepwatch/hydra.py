"""Options of stepwatch in Hydra's ConfigStore; importing this puts them there.

    # conf/config.yaml
    defaults:
      - stepwatch@profiling: default
      - _self_

    # train.py
    import stepwatch.hydra

    @hydra.main(version_base=None, config_path="conf", config_name="config")
    def main(cfg):
        with stepwatch.record(config=cfg):
            ...

Then ``python train.py profiling.max_mb=64`` sets an option, and Hydra refuses a misspelt one.
"""

from __future__ import annotations

from stepwatch import _core

# What is None is not given.
DEFAULTS: dict[str, None] = {name: None for name, *_ in _core._options()}


def register() -> None:
    """Put the options into the store, as ``default`` of the group ``stepwatch``."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(
        group="stepwatch", name="default", node=dict(DEFAULTS), provider="stepwatch"
    )


register()
