"""Compiled programs: compilation, cache, verification, execution, observation and traces."""
