"""Compiled programs: how they are made, kept, verified, run, observed and traced."""
