"""Pure statistics and verdicts: numbers in, a verdict out. No I/O, no clock, no chance."""
