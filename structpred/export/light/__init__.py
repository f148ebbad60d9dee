"""The predictors of exported programs; what they reach of the library must need NumPy alone."""
