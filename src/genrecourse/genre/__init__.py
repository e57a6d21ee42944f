"""The paper, one step a file, in reading order: pairs, bins, model, density, sample, select."""
