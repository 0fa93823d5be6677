"""The tour: five weeks of a small team's memory, dreamt, looked at, taken back, and dreamt again to the same bytes."""
