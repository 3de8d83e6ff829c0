/* Which route answers a request, and what its parameters are. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "check.h"
#include "http/router.h"

/* Stands for what a mount can see of a request. */
struct http_request {
	const char *host;
};

static unsigned claims_previews(const struct http_request *req)
{
	return strncmp(req->host, "80-", 3) == 0;
}

static unsigned claims_all_hosts_of_the_domain(const struct http_request *req)
{
	return strstr(req->host, ".box") != NULL;
}

static const struct http_route routes[] = {
	{HTTP_GET, "/"},
	{HTTP_GET, "/v1/things/{id}"},
	{HTTP_DELETE, "/v1/things/{id}"},
	{HTTP_GET, "/v1/things/search"},
	{HTTP_GET, "/v1/{kind}/recent"},
	{HTTP_POST, "/v1/things/{id}/parts/{part}"},
	{HTTP_GET, "/ui/"},
	{HTTP_GET, "/files/{path*}"},
	{HTTP_GET, "/files/{owner}/{path*}"},
	{HTTP_GET, "/files/list"},
	{HTTP_ANY, "/p/{port}/{path**}"},
};
static const struct http_route table[] = {
	{HTTP_GET, "/things/{id}"},
	{HTTP_POST, "/"},
};
static const struct http_route anything[] = {
	{HTTP_ANY, "/{path**}"},
};
static const struct http_route one[] = {
	{HTTP_GET, "/health"},
};

enum {
	OPEN,
	PREFIXED,
	DEEPER,
	BARE,
	PREVIEWS,
	DOMAIN
};
static const struct http_mount mounts[] = {
	[OPEN] = {routes, ARRAY_LEN(routes)},
	[PREFIXED] = {table, ARRAY_LEN(table), .prefix = "/e2b"},
	[DEEPER] = {table, ARRAY_LEN(table), .prefix = "/e2b/{team}/deep"},
	[BARE] = {table, ARRAY_LEN(table)},
	[PREVIEWS] = {anything, ARRAY_LEN(anything), .claims = claims_previews, .claim = 1},
	[DOMAIN] = {one, ARRAY_LEN(one), .claims = claims_all_hosts_of_the_domain, .claim = 1},
};

static struct http_target target;
static char text[4096];

static struct http_match find_for(const char *host, enum http_method method, const char *path)
{
	static struct http_router *router;
	struct http_request req = {host};
	struct error e;
	if (!router)
		CHECK(http_router_create(&router, mounts, ARRAY_LEN(mounts)) == 0);
	snprintf(text, sizeof text, "%s", path);
	http_split_target(text, &target, &e);
	return http_router_find(router, &req, &target, method != HTTP_ANY, method);
}

static struct http_match find(enum http_method method, const char *path)
{
	return find_for("localhost", method, path);
}

static void prefers_literal_segments(void)
{
	CHECK_STR(find(HTTP_GET, "/v1/things/search").pattern, "/v1/things/search");
	CHECK_STR(find(HTTP_GET, "/v1/things/other").pattern, "/v1/things/{id}");
	CHECK_STR(find(HTTP_GET, "/v1/things/recent").pattern, "/v1/things/{id}");
	CHECK_STR(find(HTTP_GET, "/v1/parts/recent").pattern, "/v1/{kind}/recent");
	CHECK_STR(find(HTTP_DELETE, "/v1/things/search").pattern, "/v1/things/{id}");
}

static void matches_whole_paths_only(void)
{
	CHECK(find(HTTP_GET, "/").route == &routes[0]);
	CHECK(!find(HTTP_GET, "/v1").allowed);
	CHECK(!find(HTTP_GET, "/v1/things").allowed);
	CHECK(!find(HTTP_GET, "/v1/things/").allowed);
	CHECK(!find(HTTP_GET, "/v1/things/a/").allowed);
	CHECK(!find(HTTP_GET, "/v1/things/a/parts").allowed);
	CHECK(!find(HTTP_GET, "/v1x/things/a").allowed);
	CHECK(!find(HTTP_GET, "/V1/things/a").allowed);
	CHECK(find(HTTP_GET, "/ui/").route && !find(HTTP_GET, "/ui").allowed);
}

static void lists_the_methods_of_a_path(void)
{
	char allow[HTTP_ALLOW_SIZE];
	struct http_match match = find(HTTP_PUT, "/v1/things/a");
	CHECK(!match.route && match.mount == &mounts[OPEN]);
	http_format_allow(match.allowed, allow);
	CHECK_STR(allow, "GET, HEAD, DELETE, OPTIONS");
	CHECK(find(HTTP_HEAD, "/v1/things/a").route == &routes[1]);
	http_format_allow(~0u, allow);
	CHECK_STR(allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
	http_format_allow(find(HTTP_PUT, "/p/80/").allowed, allow);
	CHECK_STR(allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
}

static void answers_any_method_where_a_route_says_so(void)
{
	CHECK(find(HTTP_OPTIONS, "/p/80/").route);
	/* One that has no name here. */
	CHECK(find(HTTP_ANY, "/p/80/").route);
	CHECK(!find(HTTP_ANY, "/v1/things/a").route);
}

static void takes_the_rest_of_a_path(void)
{
	CHECK_STR(find(HTTP_GET, "/files/a").pattern, "/files/{path*}");
	CHECK_STR(find(HTTP_GET, "/files/").pattern, "/files/{path*}");
	CHECK(!find(HTTP_GET, "/files").allowed);
	/* A whole path is closer than a rest, and a longer one is closer than a shorter. */
	CHECK_STR(find(HTTP_GET, "/files/list").pattern, "/files/list");
	CHECK_STR(find(HTTP_GET, "/files/a/b").pattern, "/files/{owner}/{path*}");
	CHECK_STR(find(HTTP_GET, "/files/list/").pattern, "/files/{owner}/{path*}");
	/* A decoded rest has nothing strange in it. */
	CHECK(!find(HTTP_GET, "/files/a/../b").allowed);
	CHECK(!find(HTTP_GET, "/files/a%2fb").allowed);
	CHECK(!find(HTTP_GET, "/files/a?%zz").allowed);
}

static void passes_on_a_raw_rest_unchecked(void)
{
	CHECK(find(HTTP_GET, "/p/80/").route);
	CHECK(find(HTTP_GET, "/p/80/a/%2e%2e//%2F/%zz/%00?%").route);
	CHECK(find(HTTP_GET, "/p/80/?%zz").route);
	CHECK(find(HTTP_GET, "/p/80//").route);
	CHECK(!find(HTTP_GET, "/p/80").allowed);
	/* In front of it everything is as strict as ever. */
	CHECK(!find(HTTP_GET, "/p/../80/a").allowed);
	CHECK(!find(HTTP_GET, "/p//80/a").allowed);
	CHECK(!find(HTTP_GET, "/p/8%2f0/a").allowed);
	CHECK(!find(HTTP_GET, "/p/%zz/a").allowed);
	/* However many segments there are. */
	autobuf path = {0};
	buf_append_str(&path, "/p/80");
	for (int i = 0; i < HTTP_SEGMENTS_MAX; i++)
		buf_append_str(&path, "/a");
	buf_append_char(&path, '\0');
	CHECK(find(HTTP_GET, path.data).route);
	CHECK_INT(target.segment_count, HTTP_SEGMENTS_MAX);
}

static void mounts_a_table_at_several_prefixes(void)
{
	struct http_match match = find(HTTP_GET, "/e2b/things/a");
	CHECK(match.mount == &mounts[PREFIXED]);
	CHECK_STR(match.pattern, "/e2b/things/{id}");
	match = find(HTTP_GET, "/things/a");
	CHECK(match.mount == &mounts[BARE]);
	CHECK_STR(match.pattern, "/things/{id}");
	match = find(HTTP_GET, "/e2b/x/deep/things/a");
	CHECK(match.mount == &mounts[DEEPER]);
	CHECK(find(HTTP_POST, "/e2b/").mount == &mounts[PREFIXED]);
	CHECK(!find(HTTP_POST, "/e2b").allowed);
}

static void tells_whose_an_unknown_path_is(void)
{
	CHECK(find(HTTP_GET, "/e2b/unknown").mount == &mounts[PREFIXED]);
	CHECK(find(HTTP_GET, "/e2b/a/deep/unknown").mount == &mounts[DEEPER]);
	CHECK(find(HTTP_PUT, "/e2b/things/a").mount == &mounts[PREFIXED]);
	CHECK(find(HTTP_PUT, "/things/a").mount == &mounts[BARE]);
	CHECK(find(HTTP_GET, "/e2b/%zz").mount == &mounts[PREFIXED]);
	CHECK(!find(HTTP_GET, "/unknown").mount);
	CHECK(!find(HTTP_GET, "/e2bx/things/a").mount);
}

static void gives_claimed_requests_to_those_who_claim_them(void)
{
	struct http_match match = find_for("80-abc.box", HTTP_GET, "/v1/things/a");
	CHECK(match.mount == &mounts[PREVIEWS] && match.route == &anything[0]);
	/* Two claims hold: the path decides between these two. */
	match = find_for("80-abc.box", HTTP_GET, "/health");
	CHECK(match.mount == &mounts[DOMAIN] && match.route == &one[0]);
	/* Nobody else is asked, even for a path that the claiming mount does not have. */
	match = find_for("abc.box", HTTP_GET, "/v1/things/a");
	CHECK(match.mount == &mounts[DOMAIN] && !match.allowed);
	/* And without a claim these do not exist. */
	CHECK(!find(HTTP_GET, "/health").allowed);
	CHECK(!find(HTTP_GET, "/anything").allowed);
}

static void finds_parameters_by_name(void)
{
	const char *pattern = "/v1/things/{id}/parts/{part}";
	struct http_param_position at;
	CHECK(http_pattern_find(pattern, "id", &at) && at.index == 2);
	CHECK(http_pattern_find(pattern, "part", &at) && at.index == 4);
	CHECK_INT(at.kind, HTTP_PARAM_SEGMENT);
	CHECK(!http_pattern_find(pattern, "par", &at));
	CHECK(!http_pattern_find(pattern, "things", &at));
	CHECK(!http_pattern_find(pattern, NULL, &at));
	CHECK(!http_pattern_find("/", "id", &at));
	CHECK(http_pattern_find("/a/{b*}", "b", &at) && at.kind == HTTP_PARAM_REST);
	CHECK(http_pattern_find("/a/{b**}", "b", &at) && at.kind == HTTP_PARAM_RAW_REST);
	CHECK(http_pattern_find("/a/{b**}", NULL, &at) && at.index == 1);
}

static void refuses_malformed_patterns(void)
{
	static const char *const patterns[] = {"", "a", "//", "/a//b", "/{a*}/b", "/{a**}/{b}",
		"/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3/4/5/6/7/8/9/0/1/2/3"};
	struct http_router *router;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		const struct http_route route = {HTTP_GET, patterns[i]};
		const struct http_mount mount = {&route, 1};
		CHECK_INT(http_router_create(&router, &mount, 1), -EINVAL);
	}
	static const char *const prefixes[] = {"e2b", "/e2b/", "/{a*}"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		const struct http_mount mount = {one, 1, .prefix = prefixes[i]};
		CHECK_INT(http_router_create(&router, &mount, 1), -EINVAL);
	}
}

static const struct check_test tests[] = {
	TEST(prefers_literal_segments),
	TEST(matches_whole_paths_only),
	TEST(lists_the_methods_of_a_path),
	TEST(answers_any_method_where_a_route_says_so),
	TEST(takes_the_rest_of_a_path),
	TEST(passes_on_a_raw_rest_unchecked),
	TEST(mounts_a_table_at_several_prefixes),
	TEST(tells_whose_an_unknown_path_is),
	TEST(gives_claimed_requests_to_those_who_claim_them),
	TEST(finds_parameters_by_name),
	TEST(refuses_malformed_patterns),
};

int main(void)
{
	return RUN_TESTS(tests);
}
