"""How many replicas a load needs: a simulation of a server, fed and checked by measurements."""
