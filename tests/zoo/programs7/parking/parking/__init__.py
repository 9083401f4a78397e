"""Where are the cars? Centre heatmaps on views of a parking lot."""
