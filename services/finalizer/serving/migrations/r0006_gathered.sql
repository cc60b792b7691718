-- Which customers have more members of a dimension than are kept apart: the page asks for it, over as long as a year.
CREATE INDEX rollups_gathered ON serving.rollups (customer_id, start, dimensions)
    WHERE grain = 'day' AND members[1] = '(other)';
