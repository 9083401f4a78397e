import random


def load_annotations(count, seed=10):
    """One record a car and frame, as the labelling tool exports them."""
    rng = random.Random(seed)
    return [
        {
            "frame": i // 3,
            "box": [rng.random() for _ in range(4)],
            "attributes": {"colour": rng.randrange(8), "lane": rng.randrange(4)},
        }
        for i in range(count)
    ]


def lanes_by_frame(records):
    frames = {}
    for record in records:
        frames.setdefault(record["frame"], []).append(record)
    return frames
