"""Arrays in, arrays out: the numpy routines that layers share. They know nothing of layers or graphs."""
