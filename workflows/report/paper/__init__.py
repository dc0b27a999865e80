"""Results beside the paper's, and what parts them: comparison, caveats, settings (of its hyper-parameters)."""
