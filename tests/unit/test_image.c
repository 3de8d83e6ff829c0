/* What images say about themselves, their digests and their compression. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <zlib.h>
#include <zstd.h>

#include "check.h"
#include "image/digest.h"
#include "image/inflate.h"
#include "image/manifest.h"

#define HEX_A  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define SHA(x) "sha256:" x

static const char *architecture(void)
{
	static struct utsname name;
	uname(&name);
	return strcmp(name.machine, "x86_64") == 0 ? "amd64" : "arm64";
}

static int document(
	const char *text, const char *ref, struct scratch *memory, struct image_document *d)
{
	struct error e;
	return image_parse_document(text, strlen(text), ref, memory, d, &e);
}

static void follows_an_index_to_its_only_manifest(void)
{
	autoscratch memory = {0};
	struct image_document d;
	CHECK_INT(document("{\"manifests\":[{\"digest\":\"" SHA(HEX_A) "\",\"size\":12}]}", NULL,
			  &memory, &d),
		0);
	CHECK_INT(d.kind, IMAGE_INDEX);
	CHECK_STR(d.next.path, "blobs/sha256/" HEX_A);
	CHECK_INT(d.next.size, 12);
}

static void chooses_the_platform_of_this_machine(void)
{
	autoscratch memory = {0};
	struct image_document d;
	char text[1024];
	snprintf(text, sizeof text,
		"{\"manifests\":[{\"digest\":\"" SHA(
			HEX_A) "\",\"size\":1,\"platform\":{\"os\":\"windows\",\"architecture\":\"%s\"}},"
			       "{\"digest\":\"" SHA(
				       HEX_B) "\",\"size\":2,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
		architecture(), architecture());
	CHECK_INT(document(text, NULL, &memory, &d), 0);
	CHECK_STR(d.next.digest.hex, HEX_B);
}

static void chooses_the_image_that_was_named(void)
{
	autoscratch memory = {0};
	struct image_document d;
	static const char text[] =
		"{\"manifests\":["
		"{\"digest\":\"" SHA(
			HEX_A) "\",\"size\":1,\"annotations\":{\"org.opencontainers.image.ref.name\":\"a\"}},"
			       "{\"digest\":\"" SHA(
				       HEX_B) "\",\"size\":2,\"annotations\":{\"org.opencontainers.image.ref.name\":\"b\"}}]}";
	CHECK_INT(document(text, "b", &memory, &d), 0);
	CHECK_STR(d.next.digest.hex, HEX_B);
	CHECK(document(text, "c", &memory, &d) < 0);
	CHECK(document(text, NULL, &memory, &d) < 0);
}

static void reads_a_manifest(void)
{
	autoscratch memory = {0};
	struct image_document d;
	CHECK_INT(document("{\"config\":{\"digest\":\"" SHA(
				   HEX_A) "\",\"size\":3},\"layers\":["
					  "{\"digest\":\"" SHA(HEX_B) "\",\"size\":4}]}",
			  NULL, &memory, &d),
		0);
	CHECK_INT(d.kind, IMAGE_MANIFEST);
	CHECK_STR(d.config.digest.hex, HEX_A);
	CHECK_INT((long long)d.layer_count, 1);
	CHECK_INT(d.layers[0].size, 4);
}

static void refuses_documents_that_make_no_sense(void)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"manifests\":[]}",
		"{\"manifests\":{}}",
		"{\"manifests\":[1]}",
		"{\"manifests\":[{\"digest\":\"md5:00\",\"size\":1}]}",
		"{\"manifests\":[{\"digest\":\"sha256:../../etc/passwd\",\"size\":1}]}",
		"{\"manifests\":[{\"digest\":\"" SHA(HEX_A) "\",\"size\":-1}]}",
		"{\"manifests\":[{\"digest\":\"" SHA(HEX_A) "\",\"size\":1e300}]}",
		"{\"manifests\":[{\"digest\":\"" SHA(HEX_A) "\"}]}",
		"{\"config\":{\"digest\":\"" SHA(HEX_A) "\",\"size\":5000000},\"layers\":[]}",
		"{\"config\":{\"digest\":\"" SHA(HEX_A) "\",\"size\":5},\"layers\":[{}]}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		autoscratch memory = {0};
		struct image_document d;
		if (document(bad[i], NULL, &memory, &d) == 0)
			check_fail(__FILE__, __LINE__, bad[i], NULL, NULL);
	}
}

static void refuses_too_many_layers(void)
{
	autoscratch memory = {0};
	autobuf text = {0};
	struct image_document d;
	buf_append_str(
		&text, "{\"config\":{\"digest\":\"" SHA(HEX_A) "\",\"size\":3},\"layers\":[");
	for (int i = 0; i <= IMAGE_LAYERS_MAX; i++)
		buf_append_str(&text, i ? ",{\"digest\":\"" SHA(HEX_B) "\",\"size\":4}"
					: "{\"digest\":\"" SHA(HEX_B) "\",\"size\":4}");
	buf_append_str(&text, "]}");
	buf_append_char(&text, '\0');
	CHECK(document(text.data, NULL, &memory, &d) < 0);
}

static void reads_what_docker_saves(void)
{
	autoscratch memory = {0};
	struct image_document d;
	struct error e;
	static const char text[] = "[{\"Config\":\"" HEX_A
				   ".json\",\"RepoTags\":[\"x:1\"],\"Layers\":[\"aa/layer.tar\"]}]";
	CHECK_INT(image_parse_docker(text, strlen(text), NULL, &memory, &d, &e), 0);
	CHECK_STR(d.config.digest.hex, HEX_A);
	CHECK_STR(d.layers[0].path, "aa/layer.tar");
	CHECK_STR(d.layers[0].digest.hex, "");
	CHECK_INT(image_parse_docker(text, strlen(text), "x:1", &memory, &d, &e), 0);
	CHECK(image_parse_docker(text, strlen(text), "x:2", &memory, &d, &e) < 0);
}

static void refuses_names_that_lead_out_of_the_archive(void)
{
	static const char *const bad[] = {
		"/etc/passwd", "../x", "a/../b", "a//b", "", "a/", "./a", "a/.", "a\\u0001b"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		autoscratch memory = {0};
		struct image_document d;
		struct error e;
		char text[256];
		snprintf(
			text, sizeof text, "[{\"Config\":\"c.json\",\"Layers\":[\"%s\"]}]", bad[i]);
		if (image_parse_docker(text, strlen(text), NULL, &memory, &d, &e) == 0)
			check_fail(__FILE__, __LINE__, bad[i], NULL, NULL);
	}
}

static int configuration(const char *inner, size_t layers, struct image_config *c)
{
	struct scratch memory = {0};
	struct image_document d = {.layer_count = layers};
	struct error e;
	autobuf text = {0};
	d.layers = scratch_alloc(&memory, (layers + 1) * sizeof *d.layers);
	buf_append_str(&text, "{\"rootfs\":{\"diff_ids\":[\"" SHA(HEX_B) "\"]},\"config\":{");
	buf_append_str(&text, inner);
	buf_append_str(&text, "}}");
	int r = image_parse_config(text.data, text.len, &memory, &d, c, &e);
	if (r == 0) {
		CHECK_STR(d.layers[0].plain.hex, HEX_B);
		if (c->env[0])
			CHECK_STR(c->env[0], "A=b");
		CHECK_STR(c->workdir, strstr(inner, "WorkingDir") ? "/w" : "");
	}
	scratch_finish(&memory);
	return r;
}

static void reads_the_configuration(void)
{
	struct image_config c;
	CHECK_INT(configuration(
			  "\"Env\":[\"A=b\"],\"WorkingDir\":\"/w\",\"User\":\"1000:1000\","
			  "\"Cmd\":[\"sh\"],\"Entrypoint\":null,\"ExposedPorts\":{\"80/tcp\":{}}",
			  1, &c),
		0);
	CHECK_INT(configuration("", 1, &c), 0);
	CHECK(configuration("", 2, &c) < 0); /* one digest for two layers */
	CHECK(configuration("\"Env\":[\"nothing\"]", 1, &c) < 0);
	CHECK(configuration("\"Env\":\"A=b\"", 1, &c) < 0);
	CHECK(configuration("\"Cmd\":[1]", 1, &c) < 0);
	CHECK(configuration("\"WorkingDir\":\"relative\"", 1, &c) < 0);
}

static void refuses_images_for_other_machines(void)
{
	autoscratch memory = {0};
	struct image_document d = {0};
	struct image_config c;
	struct error e;
	static const char text[] =
		"{\"os\":\"linux\",\"architecture\":\"mips\",\"rootfs\":{\"diff_ids\":[]}}";
	CHECK(image_parse_config(text, strlen(text), &memory, &d, &c, &e) < 0);
	CHECK_STR(error_name(e.code), "invalid_image");
}

static void tells_a_digest_from_another(void)
{
	/* of "abc" */
	static const struct image_digest right = {
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"};
	struct digest_check c;
	struct error e;
	digest_begin(&c);
	digest_add(&c, "ab", 2);
	digest_add(&c, "c", 1);
	CHECK_INT(digest_end(&c, &right, 3, "it", &e), 0);
	digest_begin(&c);
	digest_add(&c, "abd", 3);
	CHECK(digest_end(&c, &right, 3, "it", &e) < 0);
	digest_begin(&c);
	digest_add(&c, "abc", 3);
	CHECK(digest_end(&c, &right, 4, "it", &e) < 0);
	CHECK_STR(error_name(e.code), "digest_mismatch");
}

/* ---- compression ---- */

/* Fed in pieces of `step`, taken in pieces of `room`. */
static int expand(const char *data, size_t len, size_t step, size_t room, struct buf *out)
{
	struct inflate *i = inflate_new();
	struct error e;
	int r = 0;
	for (size_t at = 0; at < len && r == 0; at += step) {
		const char *piece = data + at;
		size_t left = len - at < step ? len - at : step, before;
		do {
			before = out->len;
			r = inflate_step(i, &piece, &left, room, out, &e);
			CHECK(out->len - before <= room);
		} while (r == 0 && (left > 0 || out->len > before));
	}
	if (r == 0)
		r = inflate_end(i, &e);
	inflate_free(i);
	return r;
}

static void gzip(const char *data, size_t len, struct buf *out)
{
	z_stream z = {0};
	CHECK(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	CHECK(buf_reserve(out, len + 1024));
	z.next_in = (unsigned char *)(uintptr_t)data;
	z.avail_in = (unsigned)len;
	z.next_out = (unsigned char *)out->data + out->len;
	z.avail_out = (unsigned)(len + 1024);
	CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
	out->len += z.total_out;
	deflateEnd(&z);
}

static void make_text(struct buf *out)
{
	for (int i = 0; i < 20000; i++)
		buf_printf(out, "%d,", i * 7919 % 10007);
}

static void check_expands(const struct buf *packed, const struct buf *wanted)
{
	static const size_t steps[] = {1, 7, 4096, 1 << 20}, rooms[] = {1000, 65536};
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < 2; k++) {
			autobuf out = {0};
			CHECK_INT(expand(packed->data, packed->len, steps[i], rooms[k], &out), 0);
			CHECK_INT((long long)out.len, (long long)wanted->len);
			CHECK(memcmp(out.data, wanted->data, out.len) == 0);
		}
}

static void expands_gzip_in_any_pieces(void)
{
	autobuf text = {0}, packed = {0}, twice = {0};
	make_text(&text);
	gzip(text.data, text.len, &packed);
	check_expands(&packed, &text);
	gzip(text.data, text.len, &packed); /* a second member behind the first */
	buf_append(&twice, text.data, text.len);
	buf_append(&twice, text.data, text.len);
	check_expands(&packed, &twice);
}

static void expands_zstd_in_any_pieces(void)
{
	autobuf text = {0}, packed = {0};
	make_text(&text);
	CHECK(buf_reserve(&packed, ZSTD_compressBound(text.len)));
	packed.len = ZSTD_compress(packed.data, packed.cap, text.data, text.len, 3);
	CHECK(!ZSTD_isError(packed.len));
	check_expands(&packed, &text);
}

static void leaves_plain_bytes_alone(void)
{
	autobuf text = {0}, none = {0};
	make_text(&text);
	check_expands(&text, &text);
	CHECK_INT(expand("", 0, 1, 100, &none), 0);
}

static void refuses_what_is_cut_or_broken(void)
{
	autobuf text = {0}, packed = {0}, out = {0};
	make_text(&text);
	gzip(text.data, text.len, &packed);
	CHECK(expand(packed.data, packed.len - 9, 4096, 65536, &out) < 0);
	packed.data[packed.len / 2] ^= 0x55;
	CHECK(expand(packed.data, packed.len, 4096, 65536, &out) < 0);
	CHECK(expand("\x28\xb5\x2f\xfd\xff\xff\xff\xff", 8, 8, 100, &out) < 0);
}

static const struct check_test tests[] = {
	TEST(follows_an_index_to_its_only_manifest),
	TEST(chooses_the_platform_of_this_machine),
	TEST(chooses_the_image_that_was_named),
	TEST(reads_a_manifest),
	TEST(refuses_documents_that_make_no_sense),
	TEST(refuses_too_many_layers),
	TEST(reads_what_docker_saves),
	TEST(refuses_names_that_lead_out_of_the_archive),
	TEST(reads_the_configuration),
	TEST(refuses_images_for_other_machines),
	TEST(tells_a_digest_from_another),
	TEST(expands_gzip_in_any_pieces),
	TEST(expands_zstd_in_any_pieces),
	TEST(leaves_plain_bytes_alone),
	TEST(refuses_what_is_cut_or_broken),
};

int main(void)
{
	return RUN_TESTS(tests);
}
