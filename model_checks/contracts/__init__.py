"""Contracts on the machines' small functions, which CrossHair confirms over all paths.

Each function here calls production code on small values and has one precondition and one postcondition, as CrossHair
reads them from the docstring. What production computes over numpy cannot be executed symbolically: there the contract
is on a scalar statement of the same definition, and a test shows that production equals it on all small inputs.
"""
