"""Determines the scales of an int8 model from examples, and tells what each layer costs and loses."""
