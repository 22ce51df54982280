"""Minutes of mixed load on a real server, and what must hold of it meanwhile and afterwards: `make soak`."""
