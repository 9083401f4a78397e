import torch


def make_games(n, n_moves=600, seed=0):
    """Games of different lengths; a move follows from the two before it, mostly."""
    g = torch.Generator().manual_seed(seed)
    games = []
    for _ in range(n):
        length = int(torch.randint(20, 120, (1,), generator=g))
        moves = torch.randint(1, n_moves, (length,), generator=g)
        for i in range(2, length):
            if i % 4:
                moves[i] = (3 * moves[i - 1] + moves[i - 2]) % (n_moves - 1) + 1
        games.append(moves)
    return games


class Batches:
    """Games of about the same length together; ``multiple`` rounds the padded length up."""

    def __init__(self, games, batch_size, multiple, seed=0):
        self.games = sorted(games, key=len)
        self.batch_size = batch_size
        self.multiple = multiple
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        starts = range(0, len(self.games), self.batch_size)
        for k in torch.randperm(len(starts), generator=self.generator):
            games = self.games[starts[k] : starts[k] + self.batch_size]
            longest = -(-max(map(len, games)) // self.multiple) * self.multiple
            padded = torch.zeros(len(games), longest, dtype=torch.long)
            for row, game in zip(padded, games):
                row[: len(game)] = game
            yield padded
