"""Decode movement from spikes with JAX, Equinox and Optax.

python examples/decoding/train_jax.py --epochs 20
python examples/decoding/train_jax.py --no-profiling
"""

from __future__ import annotations

import argparse

import equinox as eqx
import jax.random as jr
import optax
from data import Batches, r2, recordings
from jax_model import make, mse_loss, predict
from stepwatch.compat.decoding import train_decoding_jax
from stepwatch.compat.training_analysis import analyze
from stepwatch.compat.training_profiler import get_profiler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--no-profiling", action="store_true")
    parser.add_argument("--plot", metavar="FILE", help="draw the times, as .png or .svg")
    options = parser.parse_args()

    train, val = recordings(options.trials, seed=1), recordings(128, seed=2)
    model, state, filter_spec = make(train[0].shape[-1], jr.PRNGKey(0))
    opt = optax.adamw(3e-3)
    model = train_decoding_jax(
        model,
        filter_spec,
        Batches(*train),
        train,
        val,
        mse_loss,
        state,
        opt,
        opt.init(eqx.filter(model, filter_spec)),
        epochs=options.epochs,
        log_every=options.log_every,
        key=jr.PRNGKey(1),
        enable_profiling=not options.no_profiling,
    )
    predicted, _ = predict(eqx.nn.inference_mode(model), state, val[0], jr.PRNGKey(2))
    print(f"validation R2: {r2(predicted, val[1]):.4f}")
    if not options.no_profiling:
        analysis = analyze(get_profiler())
        print(f"\n{analysis.report()}")
        if options.plot:
            print(f"\nwritten: {analysis.plot(options.plot)}")


if __name__ == "__main__":
    main()
