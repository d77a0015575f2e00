"""The provider against invented input: many thousands of cases in ``make fuzz``, a few of the same in the tests."""
