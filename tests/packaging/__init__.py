"""What is released: that the wheel serves alone, and that what is declared is what is needed."""
