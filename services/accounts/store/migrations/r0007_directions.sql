-- Which of the two is larger depends on the metric: the code checks it (core/thresholds.py).
ALTER TABLE accounts.thresholds DROP CONSTRAINT thresholds_check;
