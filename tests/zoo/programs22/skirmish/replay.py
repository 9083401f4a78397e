import random
from collections import deque
from typing import NamedTuple

import numpy as np

BOARD = 128
MOVES = 12


class Move(NamedTuple):
    board: np.ndarray
    action: int
    reward: float
    following: np.ndarray
    over: bool


class Replay:
    def __init__(self, capacity, seed):
        self.moves = deque(maxlen=capacity)
        self.random = random.Random(seed)

    def add(self, move):
        self.moves.append(move)

    def sample(self, count):
        chosen = self.random.sample(range(len(self.moves)), count)
        moves = [self.moves[i] for i in chosen]
        return (
            np.stack([move.board for move in moves]),
            np.array([move.action for move in moves]),
            np.array([move.reward for move in moves], dtype=np.float32),
            np.stack([move.following for move in moves]),
            np.array([move.over for move in moves], dtype=np.float32),
        )


class Arena:
    """A game of positions that drift; a move against the drift is rewarded."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.pull = self.rng.normal(size=(BOARD, MOVES)).astype(np.float32)
        self.reset()

    def reset(self):
        self.board = self.rng.normal(size=BOARD).astype(np.float32)
        self.turn = 0

    def play(self, action):
        before = self.board
        reward = float(before @ self.pull[:, action]) / BOARD**0.5
        noise = self.rng.normal(size=BOARD).astype(np.float32)
        self.board = 0.9 * before + 0.1 * noise
        self.turn += 1
        over = self.turn == 60
        move = Move(before, action, reward, self.board, over)
        if over:
            self.reset()
        return move
