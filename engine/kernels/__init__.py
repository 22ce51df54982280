"""Arrays in, arrays out: the numpy routines that layers share. They do not depend on layers or graphs."""
