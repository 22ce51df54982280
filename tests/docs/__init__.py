"""Tests of what the pages in docs/ show."""
