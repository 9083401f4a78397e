import logging
import sys

log = logging.getLogger("turbofault")


def setup(level: str, path: str) -> None:
    log.setLevel(level.upper())
    log.propagate = False
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    file = logging.FileHandler(path)
    console = logging.StreamHandler(sys.stdout)
    console.setLevel(logging.INFO)
    for handler in (file, console):
        handler.setFormatter(formatter)
        log.addHandler(handler)


def describe(step, model, probabilities, faults):
    log.debug("step %d: faults %s", step, faults)
    log.debug("step %d: probabilities %s", step, probabilities)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            log.debug("step %d: gradient of %s: %s", step, name, parameter.grad)
