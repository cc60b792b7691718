-- The hour (since 1970) from which on a customer's sums of hours are kept; under the empty id that of all customers. Nothing is here
-- while none have expired.
CREATE TABLE serving.sums_from (customer_id text PRIMARY KEY, hour bigint NOT NULL);

-- Who reads the sums reads this too, also where the rights were granted before there was this table.
DO $$
DECLARE
    reader regrole;
BEGIN
    FOR reader IN
        SELECT DISTINCT a.grantee::regrole FROM pg_class AS c, aclexplode(c.relacl) AS a
        WHERE c.oid = 'serving.coverage'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> 0
    LOOP
        EXECUTE format('GRANT SELECT ON serving.sums_from TO %s', reader);
    END LOOP;
END
$$;
