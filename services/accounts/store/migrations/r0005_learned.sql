-- Requests that are under way do the new steps too: one whose topics were looked at already is a viewer's or a customer's all the same.
UPDATE accounts.deletion_steps AS s
SET position = array_position(
    ARRAY ['rules', 'found', 'state', 'learned', 'landed', 'recordings', 'warehouse', 'topics', 'exports'], s.step
) - 1
FROM accounts.deletions AS d WHERE d.id = s.deletion_id AND d.state IN ('pending', 'running');
INSERT INTO accounts.deletion_steps (deletion_id, position, step)
SELECT d.id, n.position, n.step FROM accounts.deletions AS d, (VALUES (0, 'rules'), (3, 'learned')) AS n (position, step)
WHERE d.state IN ('pending', 'running')
ON CONFLICT DO NOTHING;
