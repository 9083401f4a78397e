"""Event files for TensorBoard, written by the library itself: no other package is needed.

>>> with stepwatch.tensorboard.EventFile("runs/a") as events:
...     events.scalar("loss", 0.25, step=10)
...     events.image("times", "times.png", step=10)
"""

from stepwatch._core import EventFile

__all__ = ["EventFile"]
