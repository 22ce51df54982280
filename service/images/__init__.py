"""Reads encoded images safely, and prepares them as inputs of models."""
