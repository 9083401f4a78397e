"""Sleep staging from two EEG channels."""
