-- Bytes of bodies and recordings in a day, of one collector process; null: the default.
ALTER TABLE collector.customers ADD COLUMN bytes_per_day double precision CHECK (bytes_per_day > 0);
