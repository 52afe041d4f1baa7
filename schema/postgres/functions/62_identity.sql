-- The store's identity: how records get their names (protocol.md §2).

-- The caller has idem.lock_generation_exclusively().
CREATE OR REPLACE FUNCTION idem.record_identity(secret bytea, generation bigint, key_scope text, scope_source text,
                                     epochs bigint[], secret_ids text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  INSERT INTO idem.identity AS i (store_id, generation, secret, key_scope, scope_source)
    VALUES (gen_random_uuid(), record_identity.generation, record_identity.secret, record_identity.key_scope,
            record_identity.scope_source)
  ON CONFLICT (singleton) DO UPDATE SET generation = excluded.generation, key_scope = excluded.key_scope,
    scope_source = excluded.scope_source;
  DELETE FROM idem.digest_secrets;
  INSERT INTO idem.digest_secrets SELECT * FROM unnest(epochs, secret_ids);
END $$;

-- The caller has idem.lock_generation_exclusively().
CREATE OR REPLACE FUNCTION idem.record_naming(generation bigint, key_fields text, methods text[], patterns text[],
                                   names text[], formerly text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM idem.be_durable();
  UPDATE idem.identity SET generation = record_naming.generation, key_fields = record_naming.key_fields;
  DELETE FROM idem.route_names;
  INSERT INTO idem.route_names
    SELECT r.position, r.methods, r.pattern, r.name, r.formerly
    FROM unnest(methods, patterns, names, formerly) WITH ORDINALITY AS r(methods, pattern, name, formerly, position);
END $$;
