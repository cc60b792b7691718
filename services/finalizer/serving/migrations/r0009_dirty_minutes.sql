-- Of a dirty slice the minutes (0 to 59) whose views have changed; null: the whole hour is counted again.
ALTER TABLE finalizer.dirty_slices ADD COLUMN minutes smallint[];
