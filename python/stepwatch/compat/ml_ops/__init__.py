"""A guide that trains a reader of number plates: traces of its steps, profiles of its data."""
