"""Encoded images -> what a model takes: reading their bytes safely, scaling and normalising them."""
