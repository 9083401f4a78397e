import random
from dataclasses import dataclass, field


@dataclass
class Tree:
    plot: int
    species: int
    heights: list
    notes: dict = field(default_factory=dict)


@dataclass
class Plot:
    number: int
    trees: list = field(default_factory=list)


def make_inventory(n_plots, per_plot, years, seed=0):
    rng = random.Random(seed)
    plots = []
    for number in range(n_plots):
        plot = Plot(number)
        for _ in range(per_plot):
            species = rng.randrange(10)
            heights = [0.3 + 0.1 * species + 0.2 * y * rng.random() for y in range(years)]
            plot.trees.append(Tree(number, species, heights, {"seen": [number, species]}))
        plots.append(plot)
    return plots
