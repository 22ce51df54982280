"""Several processes that serve one port: who starts and replaces them, what they tell each other, what they count."""
