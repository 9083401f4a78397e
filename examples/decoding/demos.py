"""Three small demonstrations: a decorated function, five batches in torch, five batches in JAX.

python examples/decoding/demos.py [decorator] [torch] [jax]
"""

from __future__ import annotations

import sys
import time

from data import Batches, recordings
from stepwatch.compat.training_profiler import (
    get_profiler,
    log_profiling_metrics,
    profile_data_loader,
    profile_make_step,
    profile_operation,
)


@profile_operation("expensive_function")
def expensive_function(number):
    time.sleep(0.002)
    return sum(n * n for n in range(number))


def decorator() -> None:
    for number in range(10):
        expensive_function(1000 * number)


def torch() -> None:
    import torch
    from torch_model import Decoder

    model = Decoder(32)
    optimizer = torch.optim.Adam(model.parameters())
    profiler = get_profiler()
    for inputs, targets in profile_data_loader(Batches(*recordings(5 * 32))):
        start = profiler.start_timer("training_step")
        optimizer.zero_grad()
        predicted = model(torch.from_numpy(inputs))
        torch.nn.functional.mse_loss(predicted, torch.from_numpy(targets)).backward()
        optimizer.step()
        profiler.end_timer("training_step", start)
        profiler.step()


def jax() -> None:
    import equinox as eqx
    import jax.random as jr
    import optax
    from jax_model import make, mse_loss

    @eqx.filter_jit
    def make_step(model, state, filter_spec, inputs, targets, loss_fn, opt, opt_state, key):
        params, static = eqx.partition(model, filter_spec)
        (value, state), grads = loss_fn(params, static, state, inputs, targets, key)
        updates, opt_state = opt.update(grads, opt_state, params)
        return eqx.apply_updates(model, updates), state, opt_state, value, grads

    step = profile_make_step(make_step, probe_every=1)
    model, state, spec = make(32, jr.PRNGKey(0))
    opt = optax.adam(1e-3)
    opt_state = opt.init(eqx.filter(model, spec))
    for inputs, targets in profile_data_loader(Batches(*recordings(5 * 32))):
        model, state, opt_state, _, _ = step(
            model, state, spec, inputs, targets, mse_loss, opt, opt_state, jr.PRNGKey(0)
        )
        get_profiler().step()


DEMOS = {"decorator": decorator, "torch": torch, "jax": jax}


def main() -> int:
    names = sys.argv[1:] or list(DEMOS)
    unknown = [name for name in names if name not in DEMOS]
    if unknown:
        print(f"demos.py: no demonstration {unknown[0]!r}: {', '.join(DEMOS)}", file=sys.stderr)
        return 2
    for name in names:
        print(f"\n=== {name} ===")
        get_profiler().reset()
        DEMOS[name]()
        log_profiling_metrics()
    return 0


if __name__ == "__main__":
    sys.exit(main())
