import logging

log = logging.getLogger("foundry")


def configure(level):
    logging.basicConfig(
        level=level, filename="train.log", format="%(asctime)s %(levelname)s %(message)s"
    )


def details(step, batch, output, loss, model):
    """What one wants to see when something goes wrong."""
    log.debug(f"step {step}: loss {loss}")
    log.debug(f"inputs {batch}")
    log.debug(f"outputs {output}")
    for name, parameter in model.named_parameters():
        log.debug(f"{name}: {parameter.data} grad {parameter.grad}")


def details_if_wanted(step, batch, output, loss, model):
    if log.isEnabledFor(logging.DEBUG):
        details(step, batch, output, loss, model)
