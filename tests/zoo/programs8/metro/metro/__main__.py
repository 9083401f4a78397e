from .fit import fit

fit()
