"""Arrays in, arrays out: numpy routines that layers and the compiler share. They do not depend on layers or graphs."""
