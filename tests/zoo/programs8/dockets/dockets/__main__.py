"""Sort court dockets by subject."""

import argparse

from .train import Config, fit

parser = argparse.ArgumentParser(prog="dockets")
parser.add_argument("--batching", default="text", choices=["text", "ids"])
fit(Config(batching=parser.parse_args().batching))
