import numpy as np


def smape(forecast, actual):
    """Symmetric relative error in percent, over all hours that are not zero."""
    size = np.abs(forecast) + np.abs(actual)
    used = size > 0
    return 100 * np.mean(2 * np.abs(forecast - actual)[used] / size[used])
