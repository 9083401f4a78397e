"""Other people's profiling guides, run as they are written, on this profiler.

``python -m stepwatch.compat`` prints the folder which, on ``PYTHONPATH``, provides the import paths
that the guides use. Each module here maps one guide onto the public names of stepwatch.
"""
