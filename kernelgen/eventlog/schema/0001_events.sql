-- Applied once, in one transaction, and never edited afterwards: a change is a further numbered file.

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL CHECK (json_valid(payload)),
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    target TEXT GENERATED ALWAYS AS (json_extract(payload, '$.target')) VIRTUAL,
    hardware TEXT GENERATED ALWAYS AS (json_extract(payload, '$.hardware')) VIRTUAL,
    state INTEGER GENERATED ALWAYS AS (json_extract(payload, '$.state')) VIRTUAL,
    iteration_id TEXT GENERATED ALWAYS AS (json_extract(payload, '$.iteration_id')) VIRTUAL,
    CHECK (kind = json_extract(payload, '$.kind'))
) STRICT;

CREATE INDEX events_kind ON events (kind, target, hardware);
CREATE INDEX events_region ON events (target, hardware, state);
CREATE INDEX events_iteration ON events (iteration_id) WHERE iteration_id IS NOT NULL;

CREATE TABLE texts (
    digest TEXT NOT NULL PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;

-- REPLACE fires no delete trigger unless the connection asks for recursive triggers.
CREATE TRIGGER events_no_replace BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq OR id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;

CREATE TRIGGER texts_no_update BEFORE UPDATE ON texts
BEGIN SELECT RAISE(ABORT, 'texts is append-only'); END;

CREATE TRIGGER texts_no_delete BEFORE DELETE ON texts
BEGIN SELECT RAISE(ABORT, 'texts is append-only'); END;

CREATE TRIGGER texts_no_replace BEFORE INSERT ON texts
WHEN EXISTS (SELECT 1 FROM texts WHERE rowid = NEW.rowid OR digest = NEW.digest)
BEGIN SELECT RAISE(ABORT, 'texts is append-only'); END;

-- Views for people: sqlite-utils, Datasette, the sqlite3 shell.

CREATE VIEW generations AS
SELECT r.iteration_id, r.time, r.target, r.hardware, r.state,
    json_extract(r.payload, '$.chosen_by') AS chosen_by,
    json_extract(r.payload, '$.lm') AS lm,
    json_extract(r.payload, '$.model') AS model,
    json_extract(r.payload, '$.program_name') AS program,
    (SELECT count(*) FROM events e WHERE e.iteration_id = r.iteration_id AND e.kind = 'reply_received') AS replies,
    (SELECT total(json_extract(e.payload, '$.usage.cost_usd')) FROM events e
        WHERE e.iteration_id = r.iteration_id AND e.kind = 'reply_received') AS known_cost_usd,
    coalesce(
        (SELECT 'candidate' FROM events e WHERE e.iteration_id = r.iteration_id AND e.kind = 'candidate_generated'),
        (SELECT json_extract(e.payload, '$.cause') FROM events e
            WHERE e.iteration_id = r.iteration_id AND e.kind = 'generation_failed' ORDER BY e.seq DESC LIMIT 1),
        'unfinished') AS outcome,
    (SELECT json_extract(e.payload, '$.highest') FROM events e
        WHERE e.iteration_id = r.iteration_id AND e.kind = 'verdict_reached' ORDER BY e.seq DESC LIMIT 1) AS highest
FROM events r WHERE r.kind = 'generation_requested';

CREATE VIEW replies AS
SELECT iteration_id, json_extract(payload, '$.attempt') AS attempt, time, target, hardware,
    json_extract(payload, '$.model') AS model,
    json_extract(payload, '$.finish_reason') AS finish_reason,
    json_extract(payload, '$.usage.input_tokens') AS input_tokens,
    json_extract(payload, '$.usage.output_tokens') AS output_tokens,
    json_extract(payload, '$.usage.cost_usd') AS cost_usd,
    json_extract(payload, '$.usage.seconds') AS seconds,
    json_extract(payload, '$.text') AS text_digest
FROM events WHERE kind = 'reply_received';

CREATE VIEW candidates AS
SELECT iteration_id, time, target, hardware, state,
    json_extract(payload, '$.attempt') AS attempt,
    json_extract(payload, '$.hypothesis') AS hypothesis,
    json_extract(payload, '$.configs') AS configs,
    json_extract(payload, '$.overridden') AS overridden,
    json_extract(payload, '$.left_out') AS constraints_left_out,
    json_extract(payload, '$.out') AS out,
    (SELECT group_concat(f.key, ' ') FROM json_each(events.payload, '$.files') f) AS files
FROM events WHERE kind = 'candidate_generated';

CREATE VIEW verdicts AS
SELECT iteration_id, time, target, hardware, state,
    json_extract(payload, '$.highest') AS highest,
    json_extract(payload, '$.verdict.speedup') AS speedup,
    (SELECT group_concat(json_extract(l.value, '$.level') || ' ' || json_extract(l.value, '$.outcome'), ', ')
        FROM json_each(events.payload, '$.verdict.levels') l) AS levels,
    (SELECT json_extract(l.value, '$.reason') FROM json_each(events.payload, '$.verdict.levels') l
        WHERE json_extract(l.value, '$.outcome') = 'failed' LIMIT 1) AS failed_because
FROM events WHERE kind = 'verdict_reached';

CREATE VIEW refusals AS
SELECT time, target, hardware, state, json_extract(payload, '$.reason') AS reason,
    json_extract(payload, '$.overrides') AS overrides
FROM events WHERE kind = 'generation_refused';

CREATE VIEW profiles AS
SELECT time, target, hardware, json_extract(payload, '$.shape') AS shape,
    json_extract(payload, '$.profile') AS profile_digest,
    json_extract(payload, '$.raw') AS raw_digest
FROM events WHERE kind = 'profile_imported';

CREATE VIEW champions AS
SELECT time, target, hardware, json_extract(payload, '$.champion_id') AS champion_id,
    json_extract(payload, '$.origin') AS origin,
    json_extract(payload, '$.champion') AS champion_digest
FROM events WHERE kind = 'champion_named';

CREATE VIEW constraints AS
SELECT json_extract(a.payload, '$.constraint.id') AS id,
    json_extract(a.payload, '$.constraint.severity') AS severity,
    json_extract(a.payload, '$.constraint.statement') AS statement,
    json_extract(a.payload, '$.constraint.scope.target') AS target,
    json_extract(a.payload, '$.constraint.scope.hardware') AS hardware,
    json_extract(a.payload, '$.constraint.scope.dsl') AS dsl,
    json_extract(a.payload, '$.constraint.scope.state') AS state,
    json_extract(a.payload, '$.constraint.rule') AS rule,
    json_extract(a.payload, '$.constraint.source') AS source,
    a.time AS first_used,
    (SELECT json_extract(w.payload, '$.retraction.why') FROM events w
        WHERE w.kind = 'constraint_retracted'
        AND json_extract(w.payload, '$.retraction.retracts') = json_extract(a.payload, '$.constraint.id')
        ORDER BY w.seq LIMIT 1) AS retracted_because
FROM events a WHERE a.kind = 'constraint_added';
