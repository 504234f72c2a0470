"""One YAML file a suite: the folder for `lm_eval --include_path`."""
