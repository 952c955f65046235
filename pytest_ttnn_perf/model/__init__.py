"""The shared language: frozen records and closed enums. No I/O, no pytest, no numpy."""
