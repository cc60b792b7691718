"""Usual values, and the probability of observed ones: seasons, tails of counts and rates, robust deviations. Pure arithmetic."""
