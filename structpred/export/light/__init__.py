"""The source of exported programs: they need NumPy alone, and import nothing else of structpred."""
