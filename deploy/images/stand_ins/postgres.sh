#!/usr/bin/env bash
# Starts Postgres as the public image does: a user, a password and a database of the environment, made once.
set -euo pipefail
data=/var/lib/postgresql/data
if [[ ! -e $data/made ]]; then
    # An incomplete folder is made again.
    find "$data" -mindepth 1 -delete
    initdb --pgdata="$data" --username="$POSTGRES_USER" --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 \
        --pwfile=<(printf '%s' "$POSTGRES_PASSWORD") > /dev/null
    echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
    pg_ctl --pgdata="$data" --options="-c listen_addresses=''" --wait start > /dev/null
    createdb --username="$POSTGRES_USER" --host=/var/run/postgresql "$POSTGRES_DB"
    pg_ctl --pgdata="$data" --mode=fast --wait stop > /dev/null
    touch "$data/made"
fi
exec postgres -D "$data" -c listen_addresses='*'
