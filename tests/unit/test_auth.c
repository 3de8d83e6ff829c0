/* Keys and tokens: what opens what, and what does not. */
#include "http/auth.h"

#include <stdlib.h>

#include "check.h"

static const char id[] = "abcdefghij0123456789";
static const char mark[] = "0123456789abcdef";

static struct auth *with_secret(uint8_t byte)
{
	uint8_t secret[AUTH_SECRET_SIZE];
	struct auth *a = auth_new(NULL);
	memset(secret, byte, sizeof secret);
	auth_set_secret(a, secret);
	return a;
}

static void a_token_opens_what_it_was_made_for(void)
{
	struct auth *a = with_secret(1);
	char token[AUTH_TOKEN_SIZE], again[AUTH_TOKEN_SIZE], found[ID_SIZE], marked[AUTH_MARK_SIZE];
	auth_make_token(a, mark, "sandbox", id, token);
	auth_make_token(a, mark, "sandbox", id, again);
	CHECK_STR(token, again);
	CHECK(auth_open_token(a, "sandbox", token, found, marked));
	CHECK_STR(found, id);
	CHECK_STR(marked, mark);
	auth_free(a);
}

static void a_token_opens_nothing_else(void)
{
	struct auth *a = with_secret(1), *other = with_secret(2);
	char token[AUTH_TOKEN_SIZE], found[ID_SIZE], marked[AUTH_MARK_SIZE];
	auth_make_token(a, mark, "sandbox", id, token);
	CHECK(!auth_open_token(a, "volume", token, found, marked));
	CHECK(!auth_open_token(other, "sandbox", token, found, marked));
	token[3] ^= 1;
	CHECK(!auth_open_token(a, "sandbox", token, found, marked));
	token[3] ^= 1;
	token[ID_LEN + 3] ^= 1; /* that of another key */
	CHECK(!auth_open_token(a, "sandbox", token, found, marked));
	token[ID_LEN + 3] ^= 1;
	token[AUTH_TOKEN_SIZE - 2] ^= 1;
	CHECK(!auth_open_token(a, "sandbox", token, found, marked));
	auth_free(a);
	auth_free(other);
}

static void refuses_tokens_of_another_shape(void)
{
	struct auth *a = with_secret(1);
	char token[AUTH_TOKEN_SIZE + 1], found[ID_SIZE], marked[AUTH_MARK_SIZE];
	CHECK(!auth_open_token(a, "sandbox", "", found, marked));
	CHECK(!auth_open_token(a, "sandbox", id, found, marked));
	auth_make_token(a, mark, "sandbox", id, token);
	strcat(token, "0");
	CHECK(!auth_open_token(a, "sandbox", token, found, marked));
	auth_make_token(a, mark, "sandbox", "ABCDEFGHIJ0123456789", token);
	CHECK(!auth_open_token(a, "sandbox", token, found, marked));
	auth_free(a);
}

static const struct check_test tests[] = {
	TEST(a_token_opens_what_it_was_made_for),
	TEST(a_token_opens_nothing_else),
	TEST(refuses_tokens_of_another_shape),
};

int main(void)
{
	return RUN_TESTS(tests);
}
