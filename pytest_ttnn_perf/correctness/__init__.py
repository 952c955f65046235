"""How well a result agrees with what was expected: PCC and its named special cases."""
