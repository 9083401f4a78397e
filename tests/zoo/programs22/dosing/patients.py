import numpy as np

HOURS = 48
COVARIATES = 6


def simulate(count, seed):
    """Infusion rates, covariates and measured concentrations of made-up patients."""
    rng = np.random.default_rng(seed)
    covariates = rng.normal(size=(count, COVARIATES)).astype(np.float32)
    rates = rng.gamma(2.0, 1.0, size=(count, HOURS)).astype(np.float32)
    clearance = 0.2 * np.exp(0.2 * covariates[:, 0])
    level = np.zeros(count)
    levels = []
    for hour in range(HOURS):
        level = level + 0.3 * rates[:, hour] - clearance * level
        levels.append(level.copy())
    levels = np.stack(levels, axis=1) + rng.normal(scale=0.05, size=(count, HOURS))
    return covariates, rates, levels.astype(np.float32)


def batches(arrays, size, rng):
    order = rng.permutation(len(arrays[0]))
    for start in range(0, len(order) - size + 1, size):
        chosen = order[start : start + size]
        yield tuple(array[chosen] for array in arrays)
