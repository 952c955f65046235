"""Records as plain JSON values and back. Decoding says where a value is not what it should be."""
