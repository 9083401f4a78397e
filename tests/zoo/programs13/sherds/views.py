"""Two random views of pictures of sherds."""

import numpy as np
from scipy import ndimage


def one_view(picture, rng):
    size = picture.shape[-1]
    side = int(rng.integers(size * 5 // 8, size + 1))
    top, left = rng.integers(0, size - side + 1, 2)
    view = picture[:, top : top + side, left : left + side].astype(np.float32) / 255.0
    view = ndimage.zoom(view, (1, size / side, size / side), order=1)
    if rng.random() < 0.5:
        view = view[:, :, ::-1]
    gain = rng.uniform(0.7, 1.3, (3, 1, 1)).astype(np.float32)
    view = np.clip(view * gain, 0.0, 1.0)
    if rng.random() < 0.5:
        view = ndimage.gaussian_filter(view, (0, 0.7, 0.7), truncate=2.0)
    return np.ascontiguousarray(view - 0.5, dtype=np.float32)


def two_views(picture, rng):
    return one_view(picture, rng), one_view(picture, rng)
