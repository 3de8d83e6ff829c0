/*
 * One entry per version, never changed once released: a database of version N runs the entries
 * after N, each in a transaction with the new number. A database from a newer program is refused.
 */
#include "store/schema.h"

#include <stdio.h>

#include "base/cleanup.h"

static const char *const migrations[] = {
	"CREATE TABLE sandboxes ("
	" id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT, description TEXT NOT NULL,"
	" template TEXT NOT NULL, user TEXT NOT NULL, workdir TEXT NOT NULL, project TEXT NOT NULL,"
	" metadata TEXT NOT NULL,"
	" memory INTEGER NOT NULL, cpu INTEGER NOT NULL, pids INTEGER NOT NULL, open_files INTEGER NOT NULL,"
	" idle_ms INTEGER NOT NULL, execution_ms INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL, startup_us INTEGER NOT NULL, executions INTEGER NOT NULL,"
	" ephemeral INTEGER NOT NULL, failure TEXT NOT NULL, env BLOB NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX sandbox_names ON sandboxes (tenant, name) WHERE name <> '';"
	"CREATE TABLE executions ("
	" id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, tenant TEXT NOT NULL, command BLOB NOT NULL,"
	" status TEXT NOT NULL, exit_code INTEGER NOT NULL, signal INTEGER NOT NULL,"
	" timed_out INTEGER NOT NULL, oom_killed INTEGER NOT NULL,"
	" started_ms INTEGER NOT NULL, duration_us INTEGER NOT NULL,"
	" out_length INTEGER NOT NULL, err_length INTEGER NOT NULL,"
	" out_stored INTEGER NOT NULL, err_stored INTEGER NOT NULL,"
	" out_spooled INTEGER NOT NULL, err_spooled INTEGER NOT NULL,"
	" out_data BLOB NOT NULL, err_data BLOB NOT NULL"
	") STRICT;"
	"CREATE INDEX execution_ages ON executions (started_ms + duration_us / 1000);"
	"CREATE TABLE keys (hash BLOB PRIMARY KEY, tenant TEXT NOT NULL, created_ms INTEGER NOT NULL) STRICT;",

	"CREATE TABLE secrets (name TEXT PRIMARY KEY, secret BLOB NOT NULL) STRICT;",

	"ALTER TABLE executions ADD COLUMN name TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE executions ADD COLUMN user TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE executions ADD COLUMN cwd TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE executions ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN terminal INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN cpu_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE executions ADD COLUMN peak INTEGER NOT NULL DEFAULT 0;"
	"CREATE INDEX execution_sandboxes ON executions (sandbox, started_ms, id);"
	"CREATE INDEX execution_tenants ON executions (tenant, started_ms, id);",

	/* Templates: what is deleted takes what belongs to it along. */
	"CREATE TABLE templates ("
	" id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX template_names ON templates (tenant, name);"
	"CREATE TABLE builds ("
	" id TEXT PRIMARY KEY, template TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,"
	" origin TEXT NOT NULL, digest TEXT NOT NULL, root TEXT NOT NULL, layer TEXT NOT NULL,"
	" failed_step INTEGER NOT NULL, created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL,"
	" ended_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, config BLOB NOT NULL, tags BLOB NOT NULL"
	") STRICT;"
	"CREATE TABLE tags ("
	" template TEXT NOT NULL, tag TEXT NOT NULL, build TEXT NOT NULL, created_ms INTEGER NOT NULL,"
	" PRIMARY KEY (template, tag)"
	") STRICT;"
	"CREATE TABLE layers ("
	" id TEXT PRIMARY KEY, tenant TEXT NOT NULL, key TEXT NOT NULL, root TEXT NOT NULL,"
	" bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TRIGGER template_deleted AFTER DELETE ON templates BEGIN"
	" DELETE FROM builds WHERE template = OLD.id;"
	" DELETE FROM tags WHERE template = OLD.id;"
	" END;",

	/* The life cycle: what a sandbox is meant to be now, what ends it, and its row after the
	   end. */
	"ALTER TABLE sandboxes ADD COLUMN status TEXT NOT NULL DEFAULT 'idle';"
	"ALTER TABLE sandboxes ADD COLUMN boot_id TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN on_idle TEXT NOT NULL DEFAULT 'destroy';"
	"ALTER TABLE sandboxes ADD COLUMN on_lease TEXT NOT NULL DEFAULT 'destroy';"
	"ALTER TABLE sandboxes ADD COLUMN ended_by TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN lease_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN lease_end_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN paused_timeout_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN paused_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN ended_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN cpu_us INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN memory_byte_seconds INTEGER NOT NULL DEFAULT 0;"
	"UPDATE sandboxes SET status = 'failed' WHERE failure <> '';"
	"DROP INDEX sandbox_names;"
	"CREATE UNIQUE INDEX sandbox_names ON sandboxes (tenant, name) WHERE name <> '' AND ended_ms = 0;"
	"CREATE INDEX sandbox_ends ON sandboxes (ended_ms) WHERE ended_ms > 0;",

	"ALTER TABLE sandboxes ADD COLUMN disk INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE sandboxes ADD COLUMN snapshot TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN parent TEXT NOT NULL DEFAULT '';",

	"ALTER TABLE sandboxes ADD COLUMN build TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE sandboxes ADD COLUMN root TEXT NOT NULL DEFAULT '';",

	"CREATE TABLE events ("
	" sandbox TEXT NOT NULL, number INTEGER NOT NULL, time_ms INTEGER NOT NULL, type TEXT NOT NULL,"
	" cause TEXT NOT NULL, details BLOB NOT NULL, PRIMARY KEY (sandbox, number)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TRIGGER sandbox_forgotten AFTER DELETE ON sandboxes BEGIN"
	" DELETE FROM events WHERE sandbox = OLD.id;"
	" END;",

	/* Code contexts, which end with their sandbox. */
	"CREATE TABLE contexts ("
	" id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, language TEXT NOT NULL, cwd TEXT NOT NULL,"
	" is_default INTEGER NOT NULL, created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX context_sandboxes ON contexts (sandbox);"
	"CREATE TRIGGER sandbox_ended AFTER UPDATE OF ended_ms ON sandboxes WHEN NEW.ended_ms > 0 BEGIN"
	" DELETE FROM contexts WHERE sandbox = NEW.id;"
	" END;",

	/* Copies of disks. */
	"ALTER TABLE sandboxes ADD COLUMN checkpoint TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE checkpoints ("
	" id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, name TEXT NOT NULL, parent TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX checkpoint_names ON checkpoints (sandbox, name);"
	"CREATE TABLE snapshots ("
	" id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL,"
	" description TEXT NOT NULL, parent TEXT NOT NULL, sandbox TEXT NOT NULL,"
	" template TEXT NOT NULL, build TEXT NOT NULL, root TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL, bytes INTEGER NOT NULL,"
	" files INTEGER NOT NULL, deleted INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX snapshot_tags ON snapshots (tenant, name, tag)"
	" WHERE name <> '' AND tag <> '' AND deleted = 0;",

	/* Processes whose ids were told and whose ends are not known yet. */
	"CREATE TABLE processes ("
	" id TEXT PRIMARY KEY, sandbox TEXT NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL,"
	" user TEXT NOT NULL, cwd TEXT NOT NULL, started_ms INTEGER NOT NULL, kind INTEGER NOT NULL,"
	" terminal INTEGER NOT NULL, pid INTEGER NOT NULL, command BLOB NOT NULL"
	") STRICT;",

	"ALTER TABLE sandboxes ADD COLUMN volumes TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE volumes ("
	" id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL,"
	" created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX volume_names ON volumes (tenant, name);",

	/* An end is counted with the row that tells it, and only when that is new. */
	"CREATE TRIGGER execution_ended AFTER INSERT ON executions BEGIN"
	" UPDATE sandboxes SET executions = executions + 1 WHERE id = NEW.sandbox;"
	" DELETE FROM processes WHERE id = NEW.id;"
	" END;",

	/* The layer that a sandbox's disk began with. Older rows began with their build's. */
	"ALTER TABLE sandboxes ADD COLUMN layer TEXT NOT NULL DEFAULT '';"
	"UPDATE sandboxes SET layer = coalesce((SELECT layer FROM builds WHERE builds.id = build), '')"
	" WHERE build <> '';",

	"CREATE INDEX sandbox_past ON sandboxes (tenant, created_ms, id) WHERE ended_ms > 0;",

	"CREATE INDEX execution_names ON executions (sandbox, name, started_ms, id) WHERE name <> '';",

	/*
	 * The settings that sandboxes inherit from a snapshot besides its disk, and its
	 * description.
	 */
	"ALTER TABLE snapshots ADD COLUMN metadata TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE snapshots ADD COLUMN env BLOB NOT NULL DEFAULT x'';",

	/*
	 * The disk space of each tenant's executions. The index has a tenant's rows in the order in
	 * which they were stored.
	 */
	"ALTER TABLE executions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;"
	"UPDATE executions SET kept = 1024 + length(command) + out_stored + err_stored;"
	"CREATE INDEX execution_order ON executions (tenant);"
	"CREATE TABLE kept (tenant TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"INSERT INTO kept SELECT tenant, sum(kept) FROM executions GROUP BY tenant;"
	"CREATE TRIGGER execution_kept AFTER INSERT ON executions BEGIN"
	" INSERT INTO kept VALUES (NEW.tenant, NEW.kept)"
	" ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;"
	" END;"
	"CREATE TRIGGER execution_gone AFTER DELETE ON executions BEGIN"
	" UPDATE kept SET bytes = bytes - OLD.kept WHERE tenant = OLD.tenant;"
	" END;",
};

/*
 * Indexes need no version: those that lack are made, and an older program keeps them up to date.
 * By these a page of sandboxes that have ended is read from where it begins.
 */
static const char indexes[] =
	"DROP INDEX IF EXISTS sandbox_past;"
	"CREATE INDEX IF NOT EXISTS sandbox_ended ON sandboxes (tenant, status, created_ms, id)"
	" WHERE ended_ms > 0;"
	"CREATE INDEX IF NOT EXISTS sandbox_ended_names"
	" ON sandboxes (tenant, name, status, created_ms, id) WHERE ended_ms > 0 AND name <> '';";

static int read_version(sqlite3 *db, int *ret)
{
	sqlite3_stmt *st;
	if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) != SQLITE_OK)
		return -1;
	int r = sqlite3_step(st) == SQLITE_ROW ? 0 : -1;
	*ret = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return r;
}

static int run_migration(sqlite3 *db, int version)
{
	char set_version[64];
	snprintf(set_version, sizeof set_version, "PRAGMA user_version = %d", version + 1);
	if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return -1;
	if (sqlite3_exec(db, migrations[version], NULL, NULL, NULL) == SQLITE_OK &&
		sqlite3_exec(db, set_version, NULL, NULL, NULL) == SQLITE_OK &&
		sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

int schema_migrate(sqlite3 *db, struct error *e)
{
	int version;
	if (read_version(db, &version) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read the database's version: %s",
			sqlite3_errmsg(db));
	if (version > (int)ARRAY_LEN(migrations))
		return error_set(e, ERROR_INTERNAL,
			"the database is of version %d, made by a newer bunker; this one knows up to %d",
			version, (int)ARRAY_LEN(migrations));
	for (; version < (int)ARRAY_LEN(migrations); version++)
		if (run_migration(db, version) < 0)
			return error_set(e, ERROR_INTERNAL,
				"cannot bring the database to version %d: %s", version + 1,
				sqlite3_errmsg(db));
	if (sqlite3_exec(db, indexes, NULL, NULL, NULL) != SQLITE_OK)
		return error_set(e, ERROR_INTERNAL, "cannot make the database's indexes: %s",
			sqlite3_errmsg(db));
	return 0;
}
