from stepwatch.compat.decoding import train_decoding_jax, train_decoding_torch

__all__ = ["train_decoding_jax", "train_decoding_torch"]
