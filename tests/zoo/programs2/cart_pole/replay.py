import numpy as np
import pandas as pd

COLUMNS = ["x", "v", "a", "w", "action", "reward", "x2", "v2", "a2", "w2", "done"]


class FrameReplay:
    """Transitions in a data frame, so that they are easy to look at."""

    def __init__(self, capacity, seed=0):
        self.frame = pd.DataFrame(np.zeros((capacity, len(COLUMNS))), columns=COLUMNS)
        self.capacity, self.count, self.seed = capacity, 0, seed

    def push(self, state, action, reward, following, done):
        row = [*state, action, reward, *following, float(done)]
        self.frame.loc[self.count % self.capacity] = row
        self.count += 1

    def sample(self, size):
        stored = self.frame.iloc[: min(self.count, self.capacity)]
        chosen = stored.sample(size, replace=True, random_state=self.seed + self.count)
        states, actions, rewards, following, done = [], [], [], [], []
        for _, row in chosen.iterrows():
            states.append([row["x"], row["v"], row["a"], row["w"]])
            actions.append(int(row["action"]))
            rewards.append(row["reward"])
            following.append([row["x2"], row["v2"], row["a2"], row["w2"]])
            done.append(row["done"])
        return states, actions, rewards, following, done


class ArrayReplay:
    """Transitions in one array."""

    def __init__(self, capacity, seed=0):
        self.table = np.zeros((capacity, len(COLUMNS)), dtype=np.float32)
        self.capacity, self.count = capacity, 0
        self.rng = np.random.default_rng(seed)

    def push(self, state, action, reward, following, done):
        self.table[self.count % self.capacity] = [*state, action, reward, *following, done]
        self.count += 1

    def sample(self, size):
        rows = self.table[self.rng.integers(0, min(self.count, self.capacity), size)]
        return rows[:, :4], rows[:, 4].astype(np.int64), rows[:, 5], rows[:, 6:10], rows[:, 10]
