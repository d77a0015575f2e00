"""Evidence JSON, JUnit and the terminal table."""
