/* bunker-broker as a process: what it adds, what it refuses, and what it tells. Needs root. */
#include "broker_fixture.h"

/* ---- hosts ---- */

struct host {
	struct end end;
	pthread_t thread;
	void (*serve)(struct host *h);
	struct buf seen; /* of the first request, up to the end of its head */
};

static void *host_run(void *arg)
{
	struct host *h = arg;
	if (!h->end.ssl || SSL_accept(h->end.ssl) == 1)
		h->serve(h);
	return NULL;
}

/* Answers one request without a body, and ends. */
static void serve_one(struct host *h)
{
	end_hear(&h->end, &h->seen, "\r\n\r\n");
	end_say(&h->end, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	if (h->end.ssl)
		SSL_shutdown(h->end.ssl);
	shutdown(h->end.fd, SHUT_WR);
}

static void host_begin(struct host *h, const struct end *end, void (*serve)(struct host *h))
{
	h->end = *end;
	h->serve = serve;
	pthread_create(&h->thread, NULL, host_run, h);
}

static void host_end(struct host *h)
{
	pthread_join(h->thread, NULL);
	end_close(&h->end);
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;
	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* An authority, one host with a header and a placeholder for TLS, and a header for both. */
static void tell_usual(struct fixture *f, const char *secret)
{
	autobuf entries = {0};
	fixture_authority(&entries, &f->box);
	fixture_host(&entries, HOST);
	fixture_pair(&entries, BROKER_HEADER, BROKER_TLS_ONLY, "authorization", secret);
	fixture_pair(&entries, BROKER_HEADER, 0, "x-everywhere", "yes");
	fixture_pair(&entries, BROKER_PLACEHOLDER, BROKER_TLS_ONLY, PLACEHOLDER, "s3cret");
	fixture_host(&entries, "*.wild.test");
	fixture_pair(&entries, BROKER_HEADER, 0, "x-wild", "yes");
	CHECK(fixture_tell(f, SANDBOX, &entries));
}

/* A sandbox's TLS connection to HOST, which `serve` answers. */
static void open_usual(
	struct fixture *f, struct end *client, struct host *h, void (*serve)(struct host *h))
{
	struct end ends[2];
	struct identity id = fixture_identity(HOST, &f->web);
	fixture_open(f, SANDBOX, HOST, true, ends);
	end_serve_tls(&ends[1], &id);
	host_begin(h, &ends[1], serve);
	*client = ends[0];
	CHECK(end_ask_tls(client, HOST, &f->box));
	fixture_drop_identity(&id);
}

/* ---- what is added ---- */

static void adds_headers_and_replaces_placeholders_over_tls(void)
{
	struct fixture f;
	struct end client;
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_one);
	end_say(&client,
		"GET /v1?q=" PLACEHOLDER
		" HTTP/1.1\r\nHost: API.test\r\nAuthorization: Bearer mine\r\n"
		"AUTHORIZATION: again\r\nX-Key: a " PLACEHOLDER " b " PLACEHOLDER "\r\n\r\n");
	end_hear(&client, &answer, NULL);
	host_end(&h);
	CHECK_STR(answer.data, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	CHECK_STR(h.seen.data, "GET /v1?q=" PLACEHOLDER
			       " HTTP/1.1\r\nHost: API.test\r\nX-Key: a s3cret b s3cret\r\n"
			       "authorization: Bearer s3cret\r\nx-everywhere: yes\r\n\r\n");
	end_close(&client);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void adds_to_plain_http_what_is_not_for_tls_only(void)
{
	struct fixture f;
	struct end ends[2];
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	fixture_open(&f, SANDBOX, HOST, false, ends);
	host_begin(&h, &ends[1], serve_one);
	end_say(&ends[0], "GET / HTTP/1.1\r\nHost: " HOST
			  "\r\nAuthorization: mine\r\nX-Key: " PLACEHOLDER "\r\n\r\n");
	end_hear(&ends[0], &answer, NULL);
	host_end(&h);
	CHECK_STR(h.seen.data,
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nAuthorization: mine\r\nX-Key: " PLACEHOLDER
		"\r\nx-everywhere: yes\r\n\r\n");
	end_close(&ends[0]);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void serve_bodies(struct host *h)
{
	autobuf second = {0};
	end_hear(&h->end, &h->seen, "\r\n\r\n");
	size_t head = h->seen.len;
	end_hear(&h->end, &h->seen, "END1");
	end_say(&h->end, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
	end_hear(&h->end, &second, "0\r\n\r\n");
	end_say(&h->end, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
	CHECK(h->seen.len - head == 300000 && count_of(second.data, "x-everywhere: yes") == 1);
	buf_append_str(&h->seen, strstr(second.data, "\r\n\r\n"));
	buf_append_char(&h->seen, '\0');
	end_hear(&h->end, &second, NULL);
}

static void carries_bodies_of_both_framings_on_one_connection(void)
{
	static char body[300000];
	struct fixture f;
	struct end client;
	struct host h = {0};
	autobuf first = {0}, second = {0};
	memset(body, 'x', sizeof body);
	memcpy(body + sizeof body - 4, "END1", 4);
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_bodies);
	end_say(&client, "POST / HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 300000\r\n\r\n");
	end_write(&client, body, sizeof body);
	end_hear(&client, &first, "\r\n\r\n1");
	end_say(&client, "PUT / HTTP/1.1\r\nHost: " HOST
			 "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
	end_hear(&client, &second, "\r\n\r\n2");
	end_close(&client);
	host_end(&h);
	CHECK(strstr(h.seen.data, "END1\r\n\r\n5\r\nhello\r\n0\r\n\r\n") != NULL);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void serve_upgrade(struct host *h)
{
	autobuf raw = {0};
	end_hear(&h->end, &h->seen, "\r\n\r\n");
	end_say(&h->end, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
	end_hear(&h->end, &raw, "!");
	end_write(&h->end, raw.data, raw.len);
	SSL_shutdown(h->end.ssl);
	shutdown(h->end.fd, SHUT_WR);
}

static void passes_bytes_as_they_are_once_a_websocket_is_open(void)
{
	struct fixture f;
	struct end client;
	struct host h = {0};
	autobuf answer = {0}, rest = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_upgrade);
	end_say(&client, "GET /ws HTTP/1.1\r\nHost: " HOST
			 "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
	end_hear(&client, &answer, "\r\n\r\n");
	end_say(&client, "authorization: " PLACEHOLDER "!");
	end_hear(&client, &rest, NULL);
	host_end(&h);
	CHECK(count_of(h.seen.data, "authorization: Bearer s3cret\r\n") == 1);
	CHECK_STR(rest.data, "authorization: " PLACEHOLDER "!");
	end_close(&client);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

/* ---- what is refused ---- */

static void serve_nobody(struct host *h)
{
	end_hear(&h->end, &h->seen, NULL);
}

static void tells_the_sandbox_that_a_host_has_no_certificate_for_its_name(void)
{
	struct fixture f;
	struct end ends[2];
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	struct identity other = fixture_identity("other.test", &f.web);
	fixture_open(&f, SANDBOX, HOST, true, ends);
	end_serve_tls(&ends[1], &other);
	host_begin(&h, &ends[1], serve_nobody);
	CHECK(end_ask_tls(&ends[0], HOST, &f.box));
	end_say(&ends[0], "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	end_hear(&ends[0], &answer, NULL);
	host_end(&h);
	CHECK(strncmp(answer.data, "HTTP/1.1 502 ", 13) == 0);
	CHECK(strstr(answer.data, "its certificate was not accepted: hostname mismatch") != NULL);
	CHECK(h.seen.len == 0);
	end_close(&ends[0]);
	buf_finish(&h.seen);
	fixture_drop_identity(&other);
	fixture_stop(&f);
}

static void refuses_an_authority_that_is_not_in_the_trust_store(void)
{
	struct fixture f;
	struct end ends[2];
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	struct identity forged = fixture_identity(HOST, &f.box);
	fixture_open(&f, SANDBOX, HOST, true, ends);
	end_serve_tls(&ends[1], &forged);
	host_begin(&h, &ends[1], serve_nobody);
	CHECK(end_ask_tls(&ends[0], HOST, &f.box));
	end_say(&ends[0], "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	end_hear(&ends[0], &answer, NULL);
	host_end(&h);
	CHECK(strncmp(answer.data, "HTTP/1.1 502 ", 13) == 0 && h.seen.len == 0);
	end_close(&ends[0]);
	buf_finish(&h.seen);
	fixture_drop_identity(&forged);
	fixture_stop(&f);
}

/* Answers requests until nothing more comes, as servers do. */
static void serve_all(struct host *h)
{
	for (;;) {
		autobuf request = {0};
		end_hear(&h->end, &request, "\r\n\r\n");
		if (request.len == 0)
			break;
		buf_append(&h->seen, request.data, request.len);
		end_say(&h->end, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	}
	buf_append_char(&h->seen, '\0');
	SSL_shutdown(h->end.ssl);
	shutdown(h->end.fd, SHUT_WR);
}

static void refuses_another_host_on_the_first_request_and_on_later_ones(void)
{
	static const char good[] = "GET /1 HTTP/1.1\r\nHost: " HOST "\r\n\r\n";
	static const char bad[] = "GET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	struct fixture f;
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	for (int before = 0; before < 3; before++) {
		struct end client;
		struct host h = {0};
		autobuf answer = {0};
		open_usual(&f, &client, &h, serve_all);
		for (int i = 0; i < before; i++)
			end_say(&client, good);
		end_say(&client, bad);
		end_hear(&client, &answer, NULL);
		end_close(&client);
		host_end(&h);
		CHECK((int)count_of(answer.data, "HTTP/1.1 200 OK") == before);
		CHECK(count_of(answer.data, "HTTP/1.1 421 Misdirected Request") == 1);
		CHECK(count_of(h.seen.data, "/2") == 0);
		buf_finish(&h.seen);
	}
	fixture_stop(&f);
}

static void refuses_requests_that_could_be_understood_in_two_ways(void)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nHost: " HOST "\r\n\r\n",
		"GET / HTTP/1.1\nHost: " HOST "\n\n",
		"GET http://" HOST "/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n",
		"CONNECT " HOST ":443 HTTP/1.1\r\nHost: " HOST "\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: " HOST
		"\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nX: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nUpgrade: h2c\r\n\r\n",
	};
	struct fixture f;
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct end client;
		struct host h = {0};
		autobuf answer = {0};
		open_usual(&f, &client, &h, serve_nobody);
		end_say(&client, bad[i]);
		end_hear(&client, &answer, NULL);
		end_close(&client);
		host_end(&h);
		CHECK(strncmp(answer.data, "HTTP/1.1 400 ", 13) == 0);
		CHECK(h.seen.len == 0);
		buf_finish(&h.seen);
	}
	fixture_stop(&f);
}

static void answers_for_no_name_but_the_one_of_the_connection(void)
{
	struct fixture f;
	struct end ends[2];
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	fixture_open(&f, SANDBOX, HOST, true, ends);
	CHECK(!end_ask_tls(&ends[0], "other.test", &f.box));
	end_close(&ends[0]);
	end_close(&ends[1]);
	fixture_stop(&f);
}

static void closes_a_front_that_brings_what_could_break_a_head(void)
{
	static const char *const bad[][2] = {{"x", "a\r\nb: c"}, {"x y", "a"}, {"", "a"},
		{"Host", "evil.test"}, {"content-length", "3"}, {"x\r\n", "a"}, {"x:", "a"}};
	struct fixture f;
	fixture_start(&f);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		autobuf entries = {0};
		fixture_host(&entries, HOST);
		fixture_pair(&entries, BROKER_HEADER, 0, bad[i][0], bad[i][1]);
		CHECK(!fixture_tell(&f, SANDBOX, &entries));
		close(f.front);
		f.front = fixture_connect(&f, FRONT_UID);
	}
	tell_usual(&f, "Bearer s3cret");
	fixture_stop(&f);
}

/* ---- changes ---- */

/* Whether the sandbox's end has ended without an orderly end of TLS. */
static bool is_cut(struct end *e)
{
	char c;
	int r = SSL_read(e->ssl, &c, 1);
	return r <= 0 && SSL_get_error(e->ssl, r) != SSL_ERROR_ZERO_RETURN &&
	       !(SSL_get_error(e->ssl, r) == SSL_ERROR_SYSCALL && errno == EAGAIN);
}

static void resets_connections_to_hosts_whose_entries_changed(void)
{
	struct fixture f;
	struct end client;
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_all);
	tell_usual(&f, "Bearer s3cret"); /* the same again: it goes on */
	end_say(&client, "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	end_hear(&client, &answer, "ok");
	CHECK(count_of(answer.data, "200 OK") == 1);
	tell_usual(&f, "Bearer another");
	CHECK(is_cut(&client));
	end_close(&client);
	host_end(&h);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void forgets_a_sandbox_with_its_connections(void)
{
	struct fixture f;
	struct end client;
	struct host h = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_all);
	fixture_say(f.front, BROKER_FORGET, SANDBOX);
	CHECK(is_cut(&client));
	end_close(&client);
	host_end(&h);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void keeps_a_connection_waiting_until_its_entries_have_come(void)
{
	struct fixture f;
	struct end ends[2];
	struct host h = {0};
	autobuf answer = {0};
	fixture_start(&f);
	fixture_open(&f, SANDBOX, "a.wild.test", false, ends);
	host_begin(&h, &ends[1], serve_one);
	end_say(&ends[0], "GET / HTTP/1.1\r\nHost: a.wild.test\r\n\r\n");
	usleep(200 * 1000);
	tell_usual(&f, "Bearer s3cret");
	end_hear(&ends[0], &answer, NULL);
	host_end(&h);
	CHECK(count_of(h.seen.data, "x-wild: yes\r\n") == 1);
	end_close(&ends[0]);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void tells_egress_how_much_went_and_that_it_ended(void)
{
	struct fixture f;
	struct end ends[2];
	struct host h = {0};
	struct broker_counts counts;
	uint64_t sent = 0, received = 0;
	autobuf answer = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	fixture_open(&f, SANDBOX, HOST, false, ends);
	host_begin(&h, &ends[1], serve_one);
	end_say(&ends[0], "GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	end_hear(&ends[0], &answer, NULL);
	end_close(&ends[0]);
	host_end(&h);
	do {
		CHECK(recv(f.egress, &counts, sizeof counts, 0) == (ssize_t)sizeof counts);
		CHECK(counts.head.op == BROKER_COUNTS && counts.number == f.number);
		sent += counts.sent;
		received += counts.received;
	} while (!counts.ended);
	CHECK_INT((long long)sent, (long long)h.seen.len);
	CHECK_INT((long long)received, (long long)answer.len);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void ends_what_egress_resets(void)
{
	struct fixture f;
	struct end client;
	struct host h = {0};
	fixture_start(&f);
	tell_usual(&f, "Bearer s3cret");
	open_usual(&f, &client, &h, serve_nobody);
	struct broker_connection reset = {.head = {.op = BROKER_RESET}, .number = f.number};
	CHECK(send(f.egress, &reset, sizeof reset, 0) > 0);
	CHECK(is_cut(&client));
	end_close(&client);
	host_end(&h);
	buf_finish(&h.seen);
	fixture_stop(&f);
}

static void says_its_version_and_whether_it_has_egress(void)
{
	struct fixture f;
	struct broker_hello hello = {.head = {.op = BROKER_HELLO, .sequence = BROKER_PROTOCOL}};
	fixture_start(&f);
	CHECK(send(f.root, &hello, sizeof hello, 0) > 0);
	CHECK(recv(f.root, &hello, sizeof hello, 0) == (ssize_t)sizeof hello);
	CHECK_STR(hello.version, BUNKER_VERSION);
	CHECK(hello.has_egress == 1);
	fixture_stop(&f);
}

static const struct check_test tests[] = {
	TEST(adds_headers_and_replaces_placeholders_over_tls),
	TEST(adds_to_plain_http_what_is_not_for_tls_only),
	TEST(carries_bodies_of_both_framings_on_one_connection),
	TEST(passes_bytes_as_they_are_once_a_websocket_is_open),
	TEST(tells_the_sandbox_that_a_host_has_no_certificate_for_its_name),
	TEST(refuses_an_authority_that_is_not_in_the_trust_store),
	TEST(refuses_another_host_on_the_first_request_and_on_later_ones),
	TEST(refuses_requests_that_could_be_understood_in_two_ways),
	TEST(answers_for_no_name_but_the_one_of_the_connection),
	TEST(closes_a_front_that_brings_what_could_break_a_head),
	TEST(resets_connections_to_hosts_whose_entries_changed),
	TEST(forgets_a_sandbox_with_its_connections),
	TEST(keeps_a_connection_waiting_until_its_entries_have_come),
	TEST(tells_egress_how_much_went_and_that_it_ended),
	TEST(ends_what_egress_resets),
	TEST(says_its_version_and_whether_it_has_egress),
};

int main(void)
{
	if (geteuid() != 0) {
		printf("0 passed, 0 failed: this needs root\n");
		return 77;
	}
	signal(SIGPIPE, SIG_IGN);
	return RUN_TESTS(tests);
}
