"""The endpoints, one file per surface; each is thin."""
