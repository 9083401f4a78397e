"""Reads what the lines of a wav.scp name: a file, or a command that ends in a bar."""

import subprocess

import numpy as np


def read_rxfile(rx):
    if rx.endswith("|"):
        done = subprocess.run(rx[:-1], shell=True, stdout=subprocess.PIPE, check=True)
        return done.stdout
    with open(rx, "rb") as f:
        return f.read()


def read_wave(rx):
    return np.frombuffer(read_rxfile(rx), dtype=np.int16)


def read_scp(path):
    entries = []
    with open(path) as f:
        for line in f:
            utt, rx = line.strip().split(maxsplit=1)
            entries.append((utt, rx))
    return entries
