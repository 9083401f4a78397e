import gc
import resource


def tidy():
    gc.collect()


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
