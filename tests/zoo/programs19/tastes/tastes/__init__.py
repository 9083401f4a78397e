"""What people like to eat: a factor model of ratings, in NumPy."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
