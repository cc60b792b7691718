"""What is usual, and how unlikely is what is seen: seasons, tails of counts and rates, robust deviations. Pure arithmetic."""
