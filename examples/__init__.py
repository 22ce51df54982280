"""Extensions of the server and of its engine, each in one file that registers what it adds when it is imported."""
