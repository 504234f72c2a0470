"""Where submitted programs run. Knows nothing of answers: a command goes in, what the program did comes out."""
