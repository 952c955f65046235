"""A history database on a real server of PostgreSQL, which the tests start and kill."""
