#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "check.h"
#include "store/store.h"

static char directory[] = "/tmp/bunker-store-XXXXXX";
static char database[64];

static char some_env[] = "A=1\0B=2";
static const struct sandbox_record some_row = {
	.id = "aaaaaaaaaaaaaaaaaaaa",
	.tenant = "t",
	.name = "n",
	.description = "",
	.template_name = "base",
	.user = "user",
	.workdir = "",
	.project = "p",
	.metadata = "{}",
	.env = {some_env, 8},
	.resources = {.memory = 1},
	.created_ms = 5,
	.failure = "",
	.status = SANDBOX_IDLE,
	.boot_id = "",
	.ended_by = "",
	.layer = "cccccccccccccccccccc",
};

static const struct execution_row some_execution = {
	.id = "bbbbbbbbbbbbbbbbbbbb",
	.sandbox = "aaaaaaaaaaaaaaaaaaaa",
	.tenant = "t",
	.command = {(char[]){"x"}, 2},
	.status = "completed",
	.started_ms = 400,
	.duration_us = 600000,
	.length = {5, 0},
	.stored = {3, 0},
	.kept = 1500,
	.data = {{(char[]){"a\0b"}, 3}},
};

struct world {
	uv_loop_t loop;
	struct store *store;
};

static void open_world(struct world *w)
{
	struct error e;
	uv_loop_init(&w->loop);
	CHECK_INT(store_open(&w->store, &w->loop, database, &e), 0);
}

/* Closing commits and calls back; the loop then only frees. */
static void close_world(struct world *w)
{
	store_close(w->store);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&w->loop), 0);
}

static int calls;

static void count_done(void *arg, int error)
{
	(void)arg;
	CHECK_INT(error, 0);
	calls++;
}

static struct sandbox_record last_row;
static char last_env[16];

static void take_row(void *arg, const void *found)
{
	const struct sandbox_record *row = found;
	(void)arg;
	calls++;
	last_row = *row;
	memcpy(last_env, row->env.data, row->env.len < 16 ? row->env.len : 16);
	CHECK_STR(row->id, some_row.id);
	CHECK_STR(row->project, "p");
	CHECK_STR(row->layer, some_row.layer);
}

static void keeps_a_sandbox_across_a_restart(void)
{
	struct world w;
	calls = 0;
	open_world(&w);
	store_put_sandbox(w.store, &some_row, count_done, NULL);
	close_world(&w);
	CHECK_INT(calls, 1);
	open_world(&w);
	store_each_sandbox(w.store, take_row, NULL);
	CHECK_INT(calls, 2);
	CHECK_INT((long long)last_row.env.len, 8);
	CHECK_STR(last_env + 4, "B=2");
	close_world(&w);
}

static void found_execution(void *arg, const void *stored, int error)
{
	const struct execution_row *row = stored;
	(void)arg;
	calls++;
	CHECK_INT(error, 0);
	CHECK(row != NULL);
	CHECK_INT(row->stored[0], 3);
	CHECK(memcmp(row->data[0].data, "a\0b", 3) == 0);
}

static void found_nothing(void *arg, const void *row, int error)
{
	(void)arg;
	calls++;
	CHECK_INT(error, 0);
	CHECK(row == NULL);
}

static void count_stored(void *arg, int error, bool is_new)
{
	int *news = arg;
	CHECK_INT(error, 0);
	calls++;
	*news += is_new;
}

static void counts_an_execution_that_comes_twice_once(void)
{
	int news = 0;
	struct world w;
	calls = 0;
	open_world(&w);
	store_put_execution(w.store, &some_execution, count_stored, &news);
	store_put_execution(w.store, &some_execution, count_stored, &news);
	store_get_execution(w.store, some_execution.id, "t", NULL, found_execution, NULL);
	close_world(&w);
	CHECK_INT(calls, 3);
	CHECK_INT(news, 1);
	open_world(&w);
	store_each_sandbox(w.store, take_row, NULL);
	CHECK_INT(last_row.executions, 1);
	close_world(&w);
}

static void shows_an_execution_to_its_tenant_only(void)
{
	struct world w;
	calls = 0;
	open_world(&w);
	store_get_execution(w.store, some_execution.id, "somebody", NULL, found_nothing, NULL);
	close_world(&w);
	CHECK_INT(calls, 1);
}

static void each_gone(void *arg, const void *row, int error)
{
	const struct execution_gone *gone = row;
	(void)arg;
	CHECK_INT(error, 0);
	if (!gone)
		return;
	calls++;
	CHECK_STR(gone->id, some_execution.id);
	CHECK_STR(gone->tenant, "t");
	CHECK_INT(gone->kept, 1500);
}

static void count_gone(void *arg, const void *row, int error)
{
	(void)arg;
	(void)error;
	calls += row != NULL;
}

static void add_kept(void *arg, const char *tenant, int64_t bytes)
{
	CHECK_STR(tenant, "t");
	*(int64_t *)arg += bytes;
}

static void knows_what_a_tenants_executions_take(void)
{
	struct world w;
	int64_t kept = 0;
	open_world(&w);
	CHECK_INT(store_each_kept(w.store, add_kept, &kept), 0);
	CHECK_INT(kept, 1500);
	close_world(&w);
}

static void forgets_the_execution_that_was_stored_first(void)
{
	struct world w;
	struct execution_row later = some_execution;
	int64_t kept = 0;
	calls = 0;
	later.id = "dddddddddddddddddddd";
	later.started_ms = 1; /* a long one, which ended later */
	later.kept = 7;
	open_world(&w);
	store_put_execution(w.store, &later, NULL, NULL);
	store_evict_executions(w.store, "somebody", 9, 1, each_gone, NULL);
	store_evict_executions(w.store, "t", 9, 1500, each_gone, NULL);
	close_world(&w);
	CHECK_INT(calls, 1);
	open_world(&w);
	CHECK_INT(store_each_kept(w.store, add_kept, &kept), 0);
	CHECK_INT(kept, 7);
	store_evict_executions(w.store, "t", 9, 1, count_gone, NULL);
	store_put_execution(w.store, &some_execution, NULL, NULL);
	close_world(&w);
}

static void forgets_executions_that_are_too_old(void)
{
	struct world w;
	calls = 0;
	open_world(&w);
	store_expire_executions(w.store, 1000, 10, each_gone, NULL);
	store_expire_executions(w.store, 1001, 10, each_gone, NULL);
	store_get_execution(w.store, some_execution.id, "t", NULL, found_nothing, NULL);
	close_world(&w);
	CHECK_INT(calls, 2);
}

static void refuses_a_database_of_a_newer_program(void)
{
	struct world w;
	struct error e;
	char command[128];
	snprintf(command, sizeof command, "%s/newer.db", directory);
	sqlite3 *db;
	sqlite3_open(command, &db);
	sqlite3_exec(db, "PRAGMA user_version = 1000", NULL, NULL, NULL);
	sqlite3_close(db);
	uv_loop_init(&w.loop);
	CHECK(store_open(&w.store, &w.loop, command, &e) < 0);
	CHECK(strstr(e.message, "newer") != NULL);
	uv_loop_close(&w.loop);
}

static void keeps_the_first_secret_of_a_name(void)
{
	struct world w;
	struct error e;
	uint8_t first[STORE_SECRET_SIZE], again[STORE_SECRET_SIZE], other[STORE_SECRET_SIZE];
	memset(first, 1, sizeof first);
	memset(again, 2, sizeof again);
	memset(other, 3, sizeof other);
	open_world(&w);
	CHECK(store_keep_secret(w.store, "tokens", first, &e) == 0);
	CHECK(first[0] == 1);
	close_world(&w);
	open_world(&w);
	CHECK(store_keep_secret(w.store, "tokens", again, &e) == 0);
	CHECK(memcmp(first, again, sizeof first) == 0);
	CHECK(store_keep_secret(w.store, "others", other, &e) == 0);
	CHECK(other[0] == 3);
	close_world(&w);
}

static void note_id(void *arg, const void *stored, int error)
{
	const struct execution_row *row = stored;
	char *id = arg;
	CHECK_INT(error, 0);
	snprintf(id, 32, "%s", row ? row->id : "none");
}

static void put_job(struct world *w, const char *id, int64_t started_ms)
{
	struct execution_row row = some_execution;
	row.id = id;
	row.name = "job";
	row.started_ms = started_ms;
	store_put_execution(w->store, &row, NULL, NULL);
}

static void finds_an_execution_by_its_id_and_the_newest_by_its_name(void)
{
	static const char older[] = "gggggggggggggggggggg", newer[] = "hhhhhhhhhhhhhhhhhhhh";
	const char *sandbox = some_execution.sandbox;
	char by_name[32], by_id[32], elsewhere[32], of_another[32];
	struct world w;
	open_world(&w);
	put_job(&w, newer, 2000);
	put_job(&w, older, 1000);
	store_get_execution(w.store, "job", "t", sandbox, note_id, by_name);
	store_get_execution(w.store, older, "t", sandbox, note_id, by_id);
	store_get_execution(w.store, "job", "t", "iiiiiiiiiiiiiiiiiiii", note_id, elsewhere);
	store_get_execution(w.store, "job", "other", sandbox, note_id, of_another);
	close_world(&w);
	CHECK_STR(by_name, newer);
	CHECK_STR(by_id, older);
	CHECK_STR(elsewhere, "none");
	CHECK_STR(of_another, "none");
}

static void note_result(void *arg, int error)
{
	*(int *)arg = error ? -1 : 1;
}

static void put_named(struct world *w, const char *id, const char *name, int *result)
{
	struct sandbox_record row = some_row;
	memcpy(row.id, id, ID_SIZE);
	row.name = name;
	store_put_sandbox(w->store, &row, note_result, result);
}

/* The database is held by somebody else, so that the turns pile up behind it. */
static void keeps_or_refuses_what_belongs_to_one_turn_of_the_loop(void)
{
	int before = 0, event = 0, taken = 0, after = 0;
	struct event_row row = {.sandbox = some_row.id, .number = 1, .type = "x", .cause = "y"};
	struct world w;
	sqlite3 *other;
	open_world(&w);
	CHECK_INT(sqlite3_open(database, &other), SQLITE_OK);
	CHECK_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	put_named(&w, "dddddddddddddddddddd", "first", &before);
	uv_run(&w.loop, UV_RUN_NOWAIT);
	store_put_event(w.store, &row, note_result, &event);
	put_named(&w, "eeeeeeeeeeeeeeeeeeee", "first", &taken);
	uv_run(&w.loop, UV_RUN_NOWAIT);
	put_named(&w, "ffffffffffffffffffff", "second", &after);
	uv_run(&w.loop, UV_RUN_NOWAIT);
	CHECK(store_is_busy(w.store));
	sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(other);
	while (store_is_busy(w.store))
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(before, 1);
	CHECK_INT(event, -1);
	CHECK_INT(taken, -1);
	CHECK_INT(after, 1);
	close_world(&w);
}

static void note_order(void *arg, int error)
{
	CHECK_INT(error, 0);
	*(int *)arg = ++calls;
}

static void note_listed(void *arg, const struct sandbox_record *row, int64_t total)
{
	if (row)
		return;
	CHECK_INT(total, 100000);
	*(int *)arg = ++calls;
}

static void put_past(void)
{
	sqlite3 *db;
	CHECK_INT(sqlite3_open(database, &db), SQLITE_OK);
	CHECK_INT(
		sqlite3_exec(db,
			"INSERT INTO sandboxes (id, tenant, status, created_ms, ended_ms, name,"
			" description, template, user, workdir, project, metadata, memory, cpu, pids,"
			" open_files, idle_ms, execution_ms, startup_us, executions, ephemeral,"
			" failure, env)"
			" WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n <"
			" 100000) SELECT printf('p%019d', n), 'past', 'deleted', n, n + 1, '', '', '',"
			" '', '', '', '', 0, 0, 0, 0, 0, 0, 0, n % 7, 0, '', x'' FROM c",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
}

static const struct ended_query the_past = {.tenant = "past",
	.status = "deleted",
	.name = "",
	.project = "",
	.snapshot = "",
	.ephemeral = -1,
	.after_ms = -1,
	.after_id = "",
	.order = ENDED_BY_EXECUTIONS,
	.counts = true,
	.limit = 10};

/* Stops whoever reads in the middle of it: a connection that cannot write asks after each thousand
 * steps whether it may go on. */
static sem_t may_read;
static atomic_bool reading;

static int stop_reading(void *db)
{
	if (sqlite3_db_readonly(db, "main") != 1)
		return 0;
	reading = true;
	sem_wait(&may_read);
	sem_post(&may_read);
	return 0;
}

static int watch_connection(sqlite3 *db, const char **message, const void *routines)
{
	(void)message;
	(void)routines;
	sqlite3_progress_handler(db, 1000, stop_reading, db);
	return SQLITE_OK;
}

static void a_write_does_not_wait_for_a_read(void)
{
	int listed = 0, put = 0;
	struct world w;
	sem_init(&may_read, 0, 0);
	sqlite3_auto_extension((void (*)(void))watch_connection);
	open_world(&w);
	put_past();
	calls = 0;
	store_list_ended_sandboxes(w.store, &the_past, note_listed, &listed);
	for (int i = 0; i < 10000 && !reading; i++) {
		uv_run(&w.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	CHECK(reading);
	store_put_sandbox(w.store, &some_row, note_order, &put);
	for (int i = 0; i < 10000 && !put; i++) {
		uv_run(&w.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	CHECK_INT(put, 1);
	CHECK_INT(listed, 0);
	sem_post(&may_read);
	while (store_is_busy(w.store))
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(listed, 2);
	close_world(&w);
	sqlite3_reset_auto_extension();
}

static void count_expired(void *arg, const char *id)
{
	char *last = arg;
	if (!id)
		return;
	calls++;
	snprintf(last, 32, "%s", id);
}

static void forgets_sandboxes_in_slices_the_oldest_first(void)
{
	char last[32] = "";
	struct world w;
	calls = 0;
	open_world(&w);
	store_expire_sandboxes(w.store, 100000, 300, count_expired, last);
	store_expire_sandboxes(w.store, 100000, 200, count_expired, last);
	close_world(&w);
	CHECK_INT(calls, 500);
	CHECK_STR(last, "p0000000000000000500");
}

/* The database is held by somebody else, so that the write is under way when the read is asked for.
 */
static void a_read_sees_the_writes_before_it(void)
{
	char found[32] = "";
	struct world w;
	sqlite3 *other;
	open_world(&w);
	CHECK_INT(sqlite3_open(database, &other), SQLITE_OK);
	CHECK_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	put_job(&w, "jjjjjjjjjjjjjjjjjjjj", 3000);
	uv_run(&w.loop, UV_RUN_NOWAIT);
	store_get_execution(w.store, "jjjjjjjjjjjjjjjjjjjj", "t", NULL, note_id, found);
	for (int i = 0; i < 20; i++) {
		uv_run(&w.loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
	CHECK_STR(found, "");
	sqlite3_exec(other, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(other);
	while (store_is_busy(w.store))
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_STR(found, "jjjjjjjjjjjjjjjjjjjj");
	close_world(&w);
}

static void remove_files(void)
{
	static const char *const names[] = {"test.db", "test.db-wal", "test.db-shm", "newer.db"};
	char path[96];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		unlink(path);
		for (int piece = 0; piece < 16; piece++) {
			snprintf(path, sizeof path, "%s/%s-reserve/%d", directory, names[i], piece);
			unlink(path);
		}
		snprintf(path, sizeof path, "%s/%s-reserve", directory, names[i]);
		rmdir(path);
	}
	rmdir(directory);
}

static const struct check_test tests[] = {
	TEST(keeps_a_sandbox_across_a_restart),
	TEST(counts_an_execution_that_comes_twice_once),
	TEST(shows_an_execution_to_its_tenant_only),
	TEST(knows_what_a_tenants_executions_take),
	TEST(forgets_the_execution_that_was_stored_first),
	TEST(forgets_executions_that_are_too_old),
	TEST(finds_an_execution_by_its_id_and_the_newest_by_its_name),
	TEST(keeps_the_first_secret_of_a_name),
	TEST(keeps_or_refuses_what_belongs_to_one_turn_of_the_loop),
	TEST(a_write_does_not_wait_for_a_read),
	TEST(forgets_sandboxes_in_slices_the_oldest_first),
	TEST(a_read_sees_the_writes_before_it),
	TEST(refuses_a_database_of_a_newer_program),
};

int main(void)
{
	if (!mkdtemp(directory))
		return 1;
	snprintf(database, sizeof database, "%s/test.db", directory);
	atexit(remove_files);
	return RUN_TESTS(tests);
}
