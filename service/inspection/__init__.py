"""What a loaded model consists of and how it is computed, for those who look inside: operators, order, expressions."""
